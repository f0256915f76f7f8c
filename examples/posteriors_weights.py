"""posteriors: its samplers on a network of this library and a coreset (needs `pip install posteriors`)."""

# %% [markdown]
# A `Network` is a function of one flat vector, which is what libraries of functional samplers take. The log posterior
# is the sum of the weighted log-likelihoods of the coreset and the log prior.

# %%
import posteriors
import torch

import attar
from attar.infer import Draws

split = attar.load("digits")
coreset = attar.reduce(split, "dm", per_class=1, network="mlp-w16", descent={"steps": 60})
data, network = coreset.data, attar.network("mlp-w16", coreset.data.spec)
weights = torch.ones(len(data)) if data.weights is None else data.weights


def log_posterior(theta: torch.Tensor, batch: attar.Data) -> tuple[torch.Tensor, torch.Tensor]:
    logits = network(theta, batch.x)
    losses = torch.nn.functional.cross_entropy(logits, batch.y, reduction="none")
    return -(weights * losses).sum() - theta.square().sum() / 20, logits


# %% [markdown]
# Langevin dynamics of `posteriors` at a low temperature, from three random initialisations; the draws become a
# `Draws` of this library again, which predicts by averaging.

# %%
method = posteriors.sgmcmc.sgld.build(log_posterior, lr=0.01, temperature=0.001)
kept = []
for seed in range(3):
    torch.manual_seed(seed)
    state = method.init(network.init(torch.Generator().manual_seed(seed)))
    for _ in range(400):
        state, _ = method.update(state, data)
    kept.append(state.params.detach())
draws = Draws(network, torch.stack(kept), data.spec, {"sampler": "posteriors.sgmcmc.sgld"})
print(f"posteriors on {len(data)} learnt examples: {attar.evaluate(draws, split).accuracy:.1%}")
