"""The base class of models with a known posterior."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Generator, Tensor

from attar.core.errors import AttarError
from attar.data import Data
from attar.nets.objective import value_and_slope
from attar.truth.gaussian import Gaussian


class Model(ABC):
    """A likelihood with a Gaussian prior; examples may be weighted."""

    prior: Gaussian

    @abstractmethod
    def log_likelihood(self, theta: Tensor, data: Data) -> Tensor:
        """The weighted log-likelihood of the data for every row of ``(k, d)``: ``(k,)``."""

    @abstractmethod
    def sample(self, theta: Tensor, n: int, gen: Generator) -> Data:
        """``n`` examples under the parameters ``(d,)``."""

    def posterior(self, data: Data) -> Gaussian:
        """The exact posterior, for models that have one in closed form."""
        raise AttarError(f"{type(self).__name__} has no posterior in closed form: pass sample=, which draws from it.")

    def potential(self, data: Data) -> ModelPotential:
        """The potential that samplers use."""
        return ModelPotential(self, data)


class ModelEnergy:
    """The negative log posterior of a model up to a constant; the prior does not affect gradients of examples."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def value(self, theta: Tensor, batch: Data) -> Tensor:
        """The energy of every row of ``theta``."""
        return -self.model.log_likelihood(theta, batch) - self.model.prior.log_density(theta)

    def gradient(self, theta: Tensor, batch: Data, *, graph: bool = False) -> Tensor:
        """Its gradient in theta; with ``graph`` it can be differentiated again."""
        return value_and_slope(lambda at: self.value(at, batch), theta, graph)[1]


class ModelPotential:
    r"""That energy of fixed examples, :math:`-\sum_i w_i \log p(y_i \mid \theta)
    - \log \pi_0(\theta)`, exactly.
    """

    def __init__(self, model: Model, data: Data) -> None:
        self.energy, self.data = ModelEnergy(model), data

    def value(self, theta: Tensor) -> Tensor:
        return self.energy.value(theta, self.data)

    def gradient(self, theta: Tensor, gen: Generator) -> Tensor:
        return self.energy.gradient(theta, self.data)


def weights_of(data: Data) -> Tensor:
    """The weight of each example: one by default."""
    return data.x.new_ones(len(data)) if data.weights is None else data.weights
