"""Embeddings: choose which examples to label or keep, from the features of any model."""

# %% [markdown]
# One row per example, from CLIP, a language model or anything else. Here the pixels of the digits stand for them.

# %%
import numpy as np

import attar

data = attar.load("digits").train
features, labels = data.x.flatten(1).numpy(), data.y.numpy()
print(f"{len(features):,} embeddings of {features.shape[1]} numbers")

# %% [markdown]
# `k-center` needs no labels: it covers the embeddings, so that no example is far from a chosen one. Use it to decide
# what to label first. Compare the largest distance to the nearest chosen example with that of a random choice.


# %%
def radius(chosen: np.ndarray) -> float:
    gaps = np.linalg.norm(features[:, None] - features[None, chosen], axis=2)
    return float(gaps.min(1).max())


covering = attar.select(features, "k-center", size=50)
chance = attar.select(features, "uniform", size=50)
print(f"farthest example: k-center {radius(covering.indices):.1f}, random {radius(chance.indices):.1f}")

# %% [markdown]
# With labels, other methods can weigh and balance classes. A small set is the start of a larger one, so you can stop
# anywhere. `weights` say how many examples each stands for, where a method gives them.

# %%
craig = attar.select(features, "craig", labels=labels, size=30, balanced=True)
print(f"classes of the picks: {np.bincount(labels[craig.indices])}")
print(f"the first stands for {craig.weights[0]:.0f} examples, all for {craig.weights.sum():,.0f}")
craig.csv("picks.csv")  # index, row, score, class, weight
