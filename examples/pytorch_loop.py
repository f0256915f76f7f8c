"""PyTorch: a coreset file in a plain training loop, with its weights."""

# %% [markdown]
# Whoever has the file needs neither the data nor the method. `dataset()` is a `TensorDataset` of scaled examples and
# labels, with weights as a third tensor where the coreset has any.

# %%
import torch
from torch import nn
from torch.utils.data import DataLoader

import attar

split = attar.load("digits")
budget = attar.Training(steps=100, batch=64)  # of the network through which craig looks
attar.reduce(split, "craig", per_class=10, training=budget).save("digits-craig-10.safetensors")
coreset = attar.Coreset.load("digits-craig-10.safetensors")
print(coreset.training.loss, "is the loss that it was made for")

# %% [markdown]
# Weights multiply the loss of each example. Divide by their mean, so that the learning rate keeps its meaning.

# %%
torch.manual_seed(0)
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
mean = coreset.data.weights.mean()
for _ in range(50):
    for x, y, weight in DataLoader(coreset.dataset(), batch_size=32, shuffle=True):
        optimiser.zero_grad()
        losses = nn.functional.cross_entropy(model(x), y, reduction="none")
        (weight / mean * losses).mean().backward()
        optimiser.step()

# %% [markdown]
# New data must be scaled as the coreset's was.

# %%
test = split.test.transformed(coreset.data.spec.transform)
correct = (model(test.x).argmax(1) == test.y).float().mean()
print(f"PyTorch loop on {len(coreset)} examples: {correct:.1%} of {len(test)} test digits")
