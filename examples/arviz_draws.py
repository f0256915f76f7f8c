"""ArviZ: diagnostics of chains over networks (extra `arviz`)."""

# %% [markdown]
# `Draws.to_arviz` gives an `InferenceData`. With examples it also has their class probabilities `p`: the parameters of
# networks can be permuted without a change of predictions, so judge chains by `p`, not by `theta`.

# %%
import arviz

import attar

split = attar.load("digits")
coreset = attar.reduce(split, "uniform", per_class=2, network="linear")
chains = attar.infer(coreset, "hmc", draws=40, options={"warmup": 50, "thin": 4, "leaps": 10})
data = chains.to_arviz(split.val[:20])
print(dict(data.posterior.sizes))

# %%
print(f"largest R-hat of p: {float(arviz.rhat(data, var_names=['p']).p.max()):.2f}")
print(f"smallest effective sample size: {float(arviz.ess(data, var_names=['p']).p.min()):.0f}")
