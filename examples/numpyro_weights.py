"""NumPyro: a few weighted observations as factors of the likelihood (needs `pip install numpyro`)."""

# %% [markdown]
# A weighted coreset replaces the data of a probabilistic program if each log-likelihood is multiplied by its weight:
# `numpyro.factor` adds any term to the log density. Here `attar` learns ten observations and their weights in place of
# 400, for logistic regression with two parameters.

# %%
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import torch
from numpyro.infer import MCMC, NUTS

from attar.bayes.models import distil
from attar.data import Data
from attar.truth import Gaussian, LogisticRegression

gen = torch.Generator().manual_seed(0)
model = LogisticRegression(Gaussian.standard(2, scale=2.0))
everything = model.sample(torch.tensor([1.5, -1.0], dtype=torch.float64), 400, gen)


# %%
def program(x: jax.Array, y: jax.Array, weights: jax.Array) -> None:
    theta = numpyro.sample("theta", dist.Normal(0, 2).expand([2]).to_event(1))
    log_likelihood = dist.Bernoulli(logits=x @ theta).log_prob(y)
    numpyro.factor("likelihood", jnp.sum(weights * log_likelihood))


def posterior(data: Data, draws: int = 500) -> np.ndarray:
    ones = torch.ones(len(data))
    arrays = [jnp.asarray(part.numpy()) for part in (data.x, data.y, ones if data.weights is None else data.weights)]
    run = MCMC(NUTS(program), num_warmup=300, num_samples=draws, progress_bar=False)
    run.run(jax.random.PRNGKey(0), *arrays)
    return np.asarray(run.get_samples()["theta"], dtype=float)


# %% [markdown]
# While it learns, `distil` needs draws from the posterior of the few observations. This posterior has no closed form,
# so a Gaussian at its mode takes their place.


# %%
def laplace(data: Data, n: int, gen: torch.Generator) -> torch.Tensor:
    theta, precision = torch.zeros(2, dtype=torch.float64), model.prior.precision
    for _ in range(8):  # Newton's method
        p = torch.sigmoid(data.x @ theta)
        hessian = (data.x.T * (data.weights * p * (1 - p))) @ data.x + precision
        theta = theta - torch.linalg.solve(hessian, data.x.T @ (data.weights * (p - data.y)) + precision @ theta)
    return Gaussian(theta, torch.linalg.inv(hessian)).sample(n, gen)


few = distil(model, everything, 10, gen, weights="learnt", steps=500, sample=laplace)
for name, data in (("all 400", everything), ("ten learnt", few)):
    draws = posterior(data)
    print(f"{name}: mean {np.round(draws.mean(0), 2)}, deviation {np.round(draws.std(0), 2)}")
