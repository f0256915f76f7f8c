"""Bayesian models: three learnt observations whose posterior is that of three hundred."""

# %% [markdown]
# For models with few parameters, `attar.bayes.models.distil` learns weighted observations, so that their posterior is
# close to that of all data. In Bayesian linear regression the posterior is known, so the distance can be computed:
#
# ```math
# \mathrm{KL}[\pi_{\text{few}}, \pi_{\text{all}}], \quad
# \pi_S(\theta) \propto \pi_0(\theta) \prod_{i \in S} p(y_i \mid x_i, \theta)^{w_i}
# ```

# %%
import torch

from attar.bayes.models import distil
from attar.data import Data
from attar.truth import Gaussian, LinearRegression, kl

gen = torch.Generator().manual_seed(0)
model = LinearRegression(Gaussian.standard(2), noise=0.5)
everything = model.sample(torch.tensor([1.0, -2.0], dtype=torch.float64), 300, gen)
truth = model.posterior(everything)

# %% [markdown]
# A random subset, each of whose observations counts a hundred times, has its posterior in another place. Observations
# learnt with the reverse divergence, here with learnt weights, do not.

# %%
subset = everything.sample(3, gen)
subset = Data(subset.x, subset.y, torch.full((3,), 100.0, dtype=torch.float64))
learnt = distil(model, everything, 3, gen, objective="rkl", weights="learnt", steps=300)
for name, few in (("random", subset), ("learnt", learnt)):
    posterior = model.posterior(few)
    print(f"{name}: mean {posterior.mean.numpy().round(2)}, KL to the posterior of all data {kl(posterior, truth):.2f}")
print(f"all data: mean {truth.mean.numpy().round(2)}")

# %% [markdown]
# Other libraries take such observations with their weights as factors of the likelihood: see the pages on NumPyro and
# PyMC. A model of your own is a subclass of `attar.truth.Model` with `log_likelihood` and `sample`; where its posterior
# has no closed form, pass `sample=`, which draws from it.
