"""PyMC: a selection of weighted examples as potentials of a model (needs `pip install pymc`)."""

# %% [markdown]
# `pm.Potential` adds a term to the log density: here the weighted log-likelihood of 20 points that `k-means` picked
# from 400, each with the weight of its cluster. The result is an `arviz.InferenceData`, as from any other model.

# %%
import numpy as np
import pymc as pm

import attar

rng = np.random.default_rng(0)
x = rng.normal(size=400)
y = 1.0 + 2.0 * x + 0.5 * rng.normal(size=400)
picked = attar.select(np.stack([x, y], 1), "k-means", size=20)
nearest = np.abs(x[:, None] - x[None, picked.indices]) + np.abs(y[:, None] - y[None, picked.indices])
weights = np.bincount(nearest.argmin(1), minlength=20)  # how many points each stands for


# %%
def posterior(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    with pm.Model():
        theta = pm.Normal("theta", 0, 5, shape=2)
        log_likelihood = pm.logp(pm.Normal.dist(theta[0] + theta[1] * x, 0.5), y)
        pm.Potential("likelihood", (weights * log_likelihood).sum())
        draws = pm.sample(300, tune=300, chains=2, cores=1, random_seed=0, progressbar=False)
    return draws.posterior["theta"].mean(("chain", "draw")).values.round(2)


print("all 400 points:", posterior(x, y, np.ones(400)))
print("20 weighted points:", posterior(x[picked.indices], y[picked.indices], weights))
