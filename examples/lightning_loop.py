"""Lightning: a coreset as the training set of a LightningModule (needs `pip install lightning`)."""

# %% [markdown]
# Nothing special is needed: `dataset()` goes into a `DataLoader`. Labels may be soft, and `cross_entropy` takes them.

# %%
import logging

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import attar

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
split = attar.load("digits")
coreset = attar.reduce(split, "dm", per_class=1, descent={"steps": 60})


class Classifier(lightning.LightningModule):
    """A small network."""

    def __init__(self) -> None:
        super().__init__()
        self.model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    def training_step(self, batch: list[torch.Tensor], index: int) -> torch.Tensor:
        """The loss of a batch."""
        x, y = batch
        return nn.functional.cross_entropy(self.model(x), y)

    def test_step(self, batch: list[torch.Tensor], index: int) -> None:
        """The accuracy on a batch."""
        x, y = batch
        self.log("accuracy", (self.model(x).argmax(1) == y).float().mean())

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), lr=0.01)


# %%
lightning.seed_everything(0, verbose=False)
quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "enable_checkpointing": False}
trainer = lightning.Trainer(max_epochs=100, accelerator="cpu", **quiet)
model = Classifier()
trainer.fit(model, DataLoader(coreset.dataset(), batch_size=10))
test = split.test.transformed(coreset.data.spec.transform)
(scores,) = trainer.test(model, DataLoader(TensorDataset(test.x, test.y), batch_size=512), verbose=False)
print(f"Lightning on {len(coreset)} learnt examples: {scores['accuracy']:.1%}")
