"""Your own network: any function that makes a PyTorch module, wherever a network is taken."""

# %% [markdown]
# Give a function without arguments that makes the module; it is called for every new initialisation. The forward pass
# must not be random (no dropout) or change buffers (no running statistics): a network is a function of its parameters.
# Methods that use features need `nn.Linear` as the last layer.

# %%
from torch import nn

import attar


def small() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.GroupNorm(2, 8),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 4 * 4, 10),
    )


split = attar.load("digits")
budget = attar.Training(steps=150, batch=64)
coreset = attar.reduce(split, "dm", per_class=1, network=small, training=budget, descent={"steps": 60})
posterior = attar.infer(coreset, network=small, draws=3)
print(f"{posterior.network.size:,} parameters, accuracy {attar.evaluate(posterior, split).accuracy:.2f}")

# %% [markdown]
# A module that you trained can also be the eye of a selection: `attar.select.from_module(module, data)` makes a view of
# the data, which `attar.select` takes. Files record the name of a network only, so pass the module again when you load
# a posterior: `attar.Draws.load(path, own=attar.network(small, split.spec))`.

# %%
posterior.save("own.safetensors")
loaded = attar.Draws.load("own.safetensors", own=attar.network(small, split.spec))
print(f"the same after loading: {attar.evaluate(loaded, split).accuracy:.2f}")
