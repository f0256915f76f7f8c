"""The loss of a network and its gradient: the one place where they are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor
from torch.func import grad_and_value, vmap
from torch.nn.functional import cross_entropy

from attar.data import Data
from attar.nets import fast
from attar.nets.fast import engine, perceptron
from attar.nets.losses import losses
from attar.nets.members import mine
from attar.nets.network import Network

Batch = Data | Sequence[Data]  # for all vectors, or one for each
Pairs = list[tuple[Tensor, Data]]  # every vector with its batch
Reduction = Literal["mean", "sum"]
Found = TypeVar("Found")


class Energy(Protocol):
    """A function of parameter vectors ``(k, p)`` and a batch of examples that can be differentiated in both."""

    def value(self, theta: Tensor, batch: Data) -> Tensor:
        """One number for every vector, ``(k,)``."""
        ...

    def gradient(self, theta: Tensor, batch: Data, *, graph: bool = False) -> Tensor:
        """The gradient in theta, ``(k, p)``; with ``graph`` it can be differentiated again."""
        ...


def value_and_slope(loss: Callable[[Tensor], Tensor], theta: Tensor, graph: bool = False) -> tuple[Tensor, Tensor]:
    """A loss, or one of every row of ``theta``, and its gradient; with ``graph`` both can be differentiated again."""
    at = theta if graph and theta.requires_grad else theta.detach().requires_grad_()
    with torch.enable_grad():
        value = loss(at)
        (slope,) = torch.autograd.grad(value.sum(), at, create_graph=graph, materialize_grads=True)
    return value if graph else value.detach(), slope


class Objective:
    r"""The loss of examples under a network.

    .. math:: L(\theta) = \tfrac1n \sum_i w_i\, \ell(f_\theta(x_i), y_i)

    ``theta`` is one parameter vector ``(p,)`` or several, ``(k, p)``; the batch is one for all of them, or a list with
    one for each; one vector may also have a list of batches. There is one value, and one gradient, for each vector or
    batch. Weights of a batch are not normalised: with mean one over the data set (``Data.relative``), minibatch
    gradients are unbiased.

    Args:
        network: f.
        loss: The loss :math:`\ell` of an example, by name (see ``attar.nets.losses``).
        reduction: ``mean``, or ``sum`` for the sum over the examples.
    """

    def __init__(self, network: Network, loss: str = "cross-entropy", reduction: Reduction = "mean") -> None:
        self.network, self.loss, self.reduction = network, loss, reduction
        self._each = losses(loss)
        self._last: _Several | None = None

    def value(self, theta: Tensor, batch: Batch) -> Tensor:
        """The loss, ``()`` or ``(k,)``, differentiable in theta and the batch; in little memory under ``no_grad``."""
        if not torch.is_grad_enabled() and (several := self._several(theta, batch)):
            return self._values(several.layers.logits(several.rows(theta), several.x), several)
        if self._together(theta, batch):
            dims, tensors = _stacked(theta, batch)
            found: Tensor = vmap(self._loss, dims)(*tensors)
            return found
        values = _of_mine(self._value, lambda row: row.new_zeros(()), _pairs(theta, batch))
        return values[0] if _single(theta, batch) else torch.stack(values)

    def gradient(self, theta: Tensor, batch: Batch, *, graph: bool = False) -> Tensor:
        """The gradient in theta, ``(p,)`` or ``(k, p)``.

        Args:
            theta: One vector or several.
            batch: The examples.
            graph: Whether it can be differentiated again, in theta and in the examples, labels and weights; without, it
                takes less time and memory.
        """
        if not graph and (several := self._several(theta, batch)):
            return self._slopes(theta, several)[1]
        return self.value_and_gradient(theta, batch, graph=graph)[1]

    def value_and_gradient(self, theta: Tensor, batch: Batch, *, graph: bool = False) -> tuple[Tensor, Tensor]:
        """Both at once; arguments as for ``gradient``."""
        if not graph and (several := self._several(theta, batch)):
            logits, gradient = self._slopes(theta, several)
            return self._values(logits, several), gradient
        if self._together(theta, batch):
            dims, tensors = _stacked(theta, batch)
            with torch.set_grad_enabled(graph):
                slopes, values = vmap(grad_and_value(self._loss), dims)(*tensors)
            return values, slopes
        found = _of_mine(
            lambda row, part: self._alone(row, part, graph),
            lambda row: (row.new_zeros(()), torch.zeros_like(row)),
            _pairs(theta, batch),
        )
        if len(found) == 1:
            value, slope = found[0]
            return (value, slope) if _single(theta, batch) else (value[None], slope[None])
        return torch.stack([value for value, _ in found]), torch.stack([slope for _, slope in found])

    def _together(self, theta: Tensor, batch: Batch) -> bool:
        """Whether all vectors and batches are computed at once."""
        parts = [batch] if isinstance(batch, Data) else batch
        count = len(parts) if theta.ndim == 1 else len(theta)
        if count == 1 or len({(len(part), part.weights is None) for part in parts}) > 1:
            return False
        return engine.together(self.network, theta.ndim == 1, len(parts[0]))

    def _several(self, theta: Tensor, batch: Batch) -> _Several | None:
        """Batches of a perceptron that are computed at once, kept for the next call; None also for a wrong shape."""
        last = self._last
        if last is not None and last.batch is batch and last.shape == theta.shape and fast.enabled():
            return last
        layers = self.network.perceptron
        if layers is None or theta.shape[-1] != self.network.size or not self._together(theta, batch):
            return None
        if not self.network.element.fits(batch.x if isinstance(batch, Data) else batch[0].x):
            return None
        count = len(batch) if theta.ndim == 1 else len(theta)
        (_, shared, _, _), (_, x, y, weights) = _stacked(theta, batch)
        if shared is None:
            x, y = x.expand(count, *x.shape), y.expand(count, *y.shape)
            weights = None if weights is None else weights.expand(count, -1)
        weights = None if weights is None else weights.detach()
        found = _Several(batch, theta.shape, layers, x.detach().flatten(2).mT, y.detach(), weights)
        # What is kept must be views, so that it changes with the batch.
        self._last = found if isinstance(batch, Data) and batch.x.is_contiguous() else None
        return found

    def _values(self, logits: Tensor, several: _Several) -> Tensor:
        """The losses of several vectors, from logits ``(k, classes, n)``."""
        each = self._each(logits.mT.flatten(0, 1), several.y.flatten(0, 1)).view(len(logits), -1)
        each = each if several.weights is None else several.weights * each
        return each.mean(1) if self.reduction == "mean" else each.sum(1)

    def _slopes(self, theta: Tensor, several: _Several) -> tuple[Tensor, Tensor]:
        """Logits of several vectors, ``(k, classes, n)``, and gradients ``(k, p)``."""

        def slope(logits: Tensor) -> Tensor:
            if self.loss == "cross-entropy":
                scale = 1 / logits.shape[2] if self.reduction == "mean" else 1.0
                return perceptron.cross_entropy(logits, several.y, several.weights, scale)
            return value_and_slope(lambda at: self._values(at, several), logits)[1]

        return several.layers.gradient(several.rows(theta), several.x, slope)

    def _value(self, theta: Tensor, batch: Data) -> Tensor:
        if torch.is_grad_enabled() or not fast.enabled():
            return self._loss(theta, batch.x, batch.y, batch.weights)
        return engine.value(self.network, theta, _tensors(batch), self._share(len(batch)))

    def _alone(self, theta: Tensor, batch: Data, graph: bool) -> tuple[Tensor, Tensor]:
        """Value and gradient of one vector on one batch."""
        if fast.enabled() and not graph:
            return engine.gradient(self.network, theta, _tensors(batch), self._share(len(batch)))
        return value_and_slope(lambda at: self._loss(at, batch.x, batch.y, batch.weights), theta, graph)

    def _loss(self, theta: Tensor, x: Tensor, y: Tensor, weights: Tensor | None) -> Tensor:
        return self._share(len(x))(self.network(theta, x), y, weights)

    def _share(self, examples: int) -> engine.Loss:
        """The contribution of some of this many examples to the loss, from their logits, labels and weights."""

        def share(logits: Tensor, y: Tensor, weights: Tensor | None) -> Tensor:
            whole = self.reduction == "mean" and y.shape[0] == examples
            if weights is None and self.loss == "cross-entropy":  # in one operation instead of two
                total = cross_entropy(logits, y, reduction="mean" if whole else "sum")
            else:
                each = self._each(logits, y) if weights is None else weights * self._each(logits, y)
                total = each.mean() if whole else each.sum()
            return total if whole or self.reduction == "sum" else total / examples

        return share


class _Several(NamedTuple):
    """Batches, one for each of k vectors of this shape, without their graph."""

    batch: Batch
    shape: torch.Size
    layers: perceptron.Perceptron
    x: Tensor  #: (k, inputs, n)
    y: Tensor  #: (k, n), or (k, n, classes) if labels are soft
    weights: Tensor | None  #: (k, n)

    def rows(self, theta: Tensor) -> Tensor:
        """The vectors, ``(k, p)``."""
        return theta if theta.ndim > 1 else theta.expand(len(self.x), -1)


def _of_mine(compute: Callable[[Tensor, Data], Found], zero: Callable[[Tensor], Found], pairs: Pairs) -> list[Found]:
    """What is found for every pair; zero for those that other workers compute."""
    own = range(len(pairs))[mine(len(pairs))]
    return [compute(row, part) if place in own else zero(row) for place, (row, part) in enumerate(pairs)]


def _single(theta: Tensor, batch: Batch) -> bool:
    return theta.ndim == 1 and isinstance(batch, Data)


def _pairs(theta: Tensor, batch: Batch) -> Pairs:
    rows = [theta] if theta.ndim == 1 else theta.unbind()
    if isinstance(batch, Data):
        return [(row, batch) for row in rows]
    return list(zip([theta] * len(batch) if theta.ndim == 1 else rows, batch, strict=True))


def _stacked(theta: Tensor, batch: Batch) -> tuple[tuple[int | None, ...], tuple[Any, ...]]:
    """Arguments of one ``vmap``: vectors, examples, labels and weights, and which of them are batched."""
    vectors = 0 if theta.ndim > 1 else None
    if isinstance(batch, Data):
        return (vectors, None, None, None), (theta, batch.x, batch.y, batch.weights)
    x, y = torch.stack([part.x for part in batch]), torch.stack([part.y for part in batch])
    weights = [part.weights for part in batch if part.weights is not None]
    return (vectors, 0, 0, 0 if weights else None), (theta, x, y, torch.stack(weights) if weights else None)


def _tensors(batch: Data) -> engine.Batch:
    """Examples, labels and weights without their graph."""
    return batch.x.detach(), batch.y.detach(), None if batch.weights is None else batch.weights.detach()
