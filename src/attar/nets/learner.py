r"""Optimisers as pure functions: from a state and a gradient to the next state.

A state is a tuple of tensors, so that a checkpoint of it is exact, and a step can be part of a graph and be
differentiated, also in the learning rate. In a loop of your own:

>>> learner = Adam(lr=1e-3)
>>> state = learner.init(theta)
>>> for batch in batches:
...     state = learner.step(state, objective.gradient(state.theta, batch))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

Rate = float | Tensor  # a learning rate, which may be a tensor that is learnt itself
TINY = 1e-30  # added under Adam's square root, whose derivative at zero is infinite


class State(NamedTuple):
    """Everything that the next step depends on; tensors that an optimiser does not use are empty."""

    theta: Tensor  #: ``(..., p)``, the parameters
    first: Tensor  #: ``(..., p)``, the running sum (SGD) or mean (Adam) of gradients
    second: Tensor  #: ``(..., p)``, the running mean of their squares
    steps: Tensor  #: ``(...)`` int64, steps so far


class Learner(Protocol):
    """An optimiser of parameter vectors, ``(p,)`` or several, ``(k, p)``."""

    def init(self, theta: Tensor) -> State:
        """The state before the first step from ``theta``."""
        ...

    def step(self, state: State, gradient: Tensor, lr: Rate | None = None) -> State:
        """The state after one step along ``gradient``, in the shape of theta; at ``lr`` instead of its own rate."""
        ...


@dataclass(frozen=True)
class SGD:
    r"""Gradient descent, with momentum and weight decay as in ``torch.optim.SGD``.

    .. math:: v \leftarrow \mu v + g + \lambda \theta, \quad \theta \leftarrow \theta - \eta v

    Args:
        lr: The learning rate :math:`\eta`.
        momentum: :math:`\mu`; 0 is plain gradient descent.
        weight_decay: :math:`\lambda`.
    """

    lr: Rate
    momentum: Rate = 0.0
    weight_decay: float = 0.0

    @property
    def heavy(self) -> bool:
        """Whether a sum of gradients is kept; for a learnt momentum always."""
        return isinstance(self.momentum, Tensor) or self.momentum > 0

    def init(self, theta: Tensor) -> State:
        """The state before the first step from ``theta``."""
        first = torch.zeros_like(theta) if self.heavy else _nothing(theta)
        return State(theta, first, _nothing(theta), _zero(theta))

    def step(self, state: State, gradient: Tensor, lr: Rate | None = None) -> State:
        """The state after one step."""
        slope = _decayed(gradient, state.theta, self.weight_decay)
        first = _plus(slope, state.first, self.momentum) if self.heavy else state.first
        way = first if self.heavy else slope
        return State(_moved(state.theta, way, self.lr if lr is None else lr), first, state.second, state.steps + 1)


@dataclass(frozen=True)
class Adam:
    r"""Adam, with weight decay as in ``torch.optim.Adam`` (Kingma & Ba, ICLR 2015).

    .. math:: m \leftarrow \beta_1 m + (1 - \beta_1) g, \quad v \leftarrow \beta_2 v + (1 - \beta_2) g^2, \quad
        \theta \leftarrow \theta - \eta \frac{m / (1 - \beta_1^t)}{\sqrt{v / (1 - \beta_2^t)} + \epsilon}

    with :math:`\lambda \theta` added to the gradient g.

    Args:
        lr: The learning rate :math:`\eta`.
        betas: :math:`\beta_1` and :math:`\beta_2`.
        eps: :math:`\epsilon`.
        weight_decay: :math:`\lambda`.
    """

    lr: Rate
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0

    def init(self, theta: Tensor) -> State:
        """The state before the first step from ``theta``."""
        return State(theta, torch.zeros_like(theta), torch.zeros_like(theta), _zero(theta))

    def step(self, state: State, gradient: Tensor, lr: Rate | None = None) -> State:
        """The state after one step."""
        slope, steps = _decayed(gradient, state.theta, self.weight_decay), state.steps + 1
        first = torch.lerp(state.first, slope, 1 - self.betas[0])
        second = torch.addcmul(self.betas[1] * state.second, slope, slope, value=1 - self.betas[1])
        mean, square = ((1 - beta ** steps.double()).to(slope).unsqueeze(-1) for beta in self.betas)
        way = first / mean / ((second / square).clamp_min(TINY).sqrt() + self.eps)
        return State(_moved(state.theta, way, self.lr if lr is None else lr), first, second, steps)


def _nothing(theta: Tensor) -> Tensor:
    return theta.new_empty(*theta.shape[:-1], 0)


def _zero(theta: Tensor) -> Tensor:
    return torch.zeros(theta.shape[:-1], dtype=torch.int64, device=theta.device)


def _decayed(gradient: Tensor, theta: Tensor, weight_decay: float) -> Tensor:
    return torch.add(gradient, theta, alpha=weight_decay) if weight_decay else gradient


def _plus(slope: Tensor, sum: Tensor, momentum: Rate) -> Tensor:
    return slope + momentum * sum if isinstance(momentum, Tensor) else torch.add(slope, sum, alpha=momentum)


def _moved(theta: Tensor, way: Tensor, lr: Rate) -> Tensor:
    return theta - lr * way if isinstance(lr, Tensor) else torch.add(theta, way, alpha=-lr)
