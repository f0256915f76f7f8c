"""Models with a known posterior, and divergences to it; one file per model."""

from attar.truth.gaussian import Gaussian, divergence, kl, squared_w2
from attar.truth.linear import LinearRegression
from attar.truth.logistic import LogisticRegression
from attar.truth.mean import GaussianMean
from attar.truth.model import Model

__all__ = [
    "Gaussian",
    "GaussianMean",
    "LinearRegression",
    "LogisticRegression",
    "Model",
    "divergence",
    "kl",
    "squared_w2",
]
