"""Loops of your own: learning examples, training on them and sampling, one step at a time."""

# %% [markdown]
# `attar.plan` decides a reduction without running it. `condensation()` is its loop: `step()` is one update of the
# examples, so a loop of your own can log, show or stop whatever it likes.

# %%
import torch

import attar
from attar.infer.langevin import Langevin
from attar.nets.learner import SGD
from attar.nets.objective import Objective
from attar.reduce import finished

split = attar.load("digits")
how = {"per_class": 1, "network": "mlp-w32"}
decided = attar.plan(split, "dm", **how)
loop = decided.condensation()
losses = [loop.step().loss for _ in range(40)]
coreset = finished(loop, decided.recipe())
print(f"loss of dm: {losses[0]:.2f}, after 40 steps {losses[-1]:.2f}")

# %% [markdown]
# A coreset can be learnt further, also by another method.

# %%
coreset = attar.reduce(split, "dm", start=coreset, descent={"steps": 40}, **how)

# %% [markdown]
# Training: an `Objective` has the gradient of a network's loss, a learner (`SGD` or `Adam`) is an optimiser whose state
# is a tuple of tensors.

# %%
network = attar.network("mlp-w32", split.spec)
objective, learner = Objective(network), SGD(lr=0.05, momentum=0.9)
state = learner.init(network.init(torch.Generator().manual_seed(0)))
for _ in range(200):
    state = learner.step(state, objective.gradient(state.theta, coreset.data))
right = network(state.theta, split.test.x).argmax(1) == split.test.y
print(f"trained on {len(coreset)} examples: {right.float().mean():.1%} of the test digits")


# %% [markdown]
# MCMC: `init` and `update` of a sampler move several chains over any potential, here that of a Gaussian with standard
# deviations 1 and 2.


# %%
class Gaussian:
    precision = torch.tensor([1.0, 0.25])

    def value(self, theta: torch.Tensor) -> torch.Tensor:
        return (theta.square() * self.precision).sum(1) / 2

    def gradient(self, theta: torch.Tensor, gen: torch.Generator) -> torch.Tensor:
        return theta * self.precision


gen = torch.Generator().manual_seed(0)
sampler, potential = Langevin(step=0.2, warmup=50, temperature=1.0), Gaussian()
chains = sampler.init(potential, torch.zeros(100, 2), gen)
drawn = []
for number in range(1000):
    chains = sampler.update(chains, potential, gen)
    if number >= 200:
        drawn.append(chains.theta)
widths = torch.cat(drawn).std(0)
print(f"standard deviations of the draws: [{widths[0]:.2f} {widths[1]:.2f}]")
