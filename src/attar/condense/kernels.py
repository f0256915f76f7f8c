"""Kernels of infinitely wide networks and others, and ridge regression with them, in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import pi
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from attar.core.errors import AttarError, unknown
from attar.data import Data, Spec
from attar.infer.head import regressors
from attar.nets import Network
from attar.nets.losses import targets

Kernel = Callable[[Tensor, Tensor], Tensor]  # examples (n, ...) and (m, ...) → (n, m) in float64, differentiable

WEIGHT, BIAS = 2.0, 0.01  # variances of the weights, times their number of inputs, and of the biases
JITTERS = (0.0, *(10.0**k for k in range(-14, -5)))  # tried in this order, in units of the mean diagonal
LARGEST = 2**31  # bytes of a kernel matrix
ROUNDING = 1e-14  # of a cosine, times some


def rbf(a: Tensor, b: Tensor) -> Tensor:
    r""":math:`k(x, x') = \exp(-\|x - x'\|^2 / d)` for examples of d numbers."""
    a, b = a.flatten(1).double(), b.flatten(1).double()
    squares = a.square().sum(1)[:, None] + b.square().sum(1) - 2 * a @ b.T
    return (-squares.clamp_min(0) / a.shape[1]).exp()


def fully_connected(depth: int, tangent: bool, a: Tensor, b: Tensor) -> Tensor:
    r"""NNGP, or with ``tangent`` NTK, of a ReLU network with ``depth`` hidden layers.

    .. math:: \Sigma_0 = \sigma_w^2 \tfrac{x \cdot x'}{d} + \sigma_b^2, \quad
        \Sigma_{l+1} = \sigma_w^2 \sqrt{\Sigma_l(x, x) \Sigma_l(x', x')}\, \kappa_1(c_l) + \sigma_b^2, \quad
        \Theta_{l+1} = \Sigma_{l+1} + \sigma_w^2 \kappa_0(c_l)\, \Theta_l, \quad \Theta_0 = \Sigma_0

    with the cosine :math:`c_l` of :math:`\Sigma_l` and the arc-cosine kernels
    :math:`\kappa_0(c) = \tfrac{\pi - \arccos c}{2\pi}` and
    :math:`\kappa_1(c) = \tfrac{\sqrt{1 - c^2} + (\pi - \arccos c)\, c}{2\pi}`
    (Cho & Saul, NeurIPS 2009; Jacot, Gabriel & Hongler, NeurIPS 2018).
    """
    a, b = a.flatten(1).double(), b.flatten(1).double()
    share = WEIGHT / a.shape[1]
    nngp, left, right = share * a @ b.T + BIAS, share * a.square().sum(1) + BIAS, share * b.square().sum(1) + BIAS
    ntk = nngp
    for _ in range(depth):
        width = (left[:, None] * right).sqrt()
        cosine = nngp / width
        nngp = WEIGHT * width * _apply(_Kappa1, cosine) + BIAS
        ntk = nngp + WEIGHT * _apply(_Kappa0, cosine) * ntk
        left, right = WEIGHT * left / 2 + BIAS, WEIGHT * right / 2 + BIAS
    return ntk if tangent else nngp


def features(network: Network, theta: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Inner products of a network's features, in the units of its last layer's prior."""
    left, right = (regressors(network, network.features(theta, x)) for x in (a, b))
    return left @ right.T


FIXED: dict[str, Kernel] = {
    "rbf": rbf,
    **{f"nngp{depth}": partial(fully_connected, depth, False) for depth in (1, 2, 3)},
    **{f"ntk{depth}": partial(fully_connected, depth, True) for depth in (1, 2, 3)},
}
RANDOM = "features"  #: of the task's network with random parameters, which is convolutional for images


def parse(names: str) -> list[str]:
    """The kernels that a hyphenated list names, such as ``ntk1-ntk2-features``."""
    for name in names.split("-"):
        if name not in FIXED and name != RANDOM:
            raise unknown("kernel", name, (*FIXED, RANDOM))
    return names.split("-")


def draw(names: str, network: Network, gen: Generator) -> Kernel:
    """One of the kernels, drawn uniformly at random."""
    known = parse(names)
    return make(known[int(torch.randint(len(known), (), generator=gen, device=gen.device))], network, gen)


def make(name: str, network: Network, gen: Generator) -> Kernel:
    """The kernel of this name; ``gen`` draws the parameters of random features."""
    return partial(features, network, network.init(gen)) if name == RANDOM else FIXED[name]


class Factor(NamedTuple):
    """A Cholesky factor, and the jitter that was added."""

    lower: Tensor
    jitter: float


def require_room(examples: int) -> None:
    """Raise an error if the kernel matrix of this many examples would be too large."""
    if 8 * examples**2 > LARGEST:
        raise AttarError(f"A kernel matrix of {examples} examples takes more than 2 GB: take fewer of them.")


def factorise(gram: Tensor, ridge: float) -> Factor:
    r"""The Cholesky factor of :math:`K + \lambda \tfrac{\mathrm{tr} K}{n} I`; λ is increased if needed."""
    eye = gram.diagonal().mean() * torch.eye(len(gram), dtype=gram.dtype, device=gram.device)
    for jitter in JITTERS:
        lower, failed = torch.linalg.cholesky_ex(gram + (ridge + jitter) * eye)
        if not bool(failed) and bool(torch.isfinite(lower).all()):
            return Factor(lower, jitter)
    raise AttarError(
        f"The kernel matrix of {len(gram)} examples is singular at λ = {ridge:g} and at λ = {ridge + JITTERS[-1]:g}: "
        "raise λ (ridge), or drop examples that are equal or not finite."
    )


@dataclass(frozen=True)
class KernelRidge:
    r"""Kernel ridge regression on centred labels.

    .. math:: f(x) = K_{xS} \Big(K_{SS} + \lambda \tfrac{\mathrm{tr} K_{SS}}{n} I\Big)^{-1} \hat y_S, \quad
        \hat y = y - \tfrac1C
    """

    kernel: Kernel
    x: Tensor
    dual: Tensor  #: (n, classes)
    spec: Spec
    jitter: float = 0.0
    scale: float = 10.0  #: from regression on labels to logits, as for ``last-layer-vi``
    chunk: int = 1024

    @staticmethod
    def fit(data: Data, kernel: Kernel, ridge: float = 1e-6, classes: int | None = None) -> KernelRidge:
        """Fit to these examples, weighted if they have weights."""
        require_room(len(data))
        root = data.relative.double().sqrt()[:, None]
        lower, jitter = factorise(root * kernel(data.x, data.x) * root.T, ridge)
        dual = root * torch.cholesky_solve(root * targets(data.y, classes or data.classes), lower)
        return KernelRidge(kernel, data.x, dual, data.spec, jitter)

    def __call__(self, x: Tensor) -> Tensor:
        """Predicted centred labels, ``(n, classes)``; differentiable."""
        return self.kernel(x, self.x) @ self.dual

    @torch.no_grad()
    def targets(self, x: Tensor) -> Tensor:
        """The same without gradients, in parts to save memory."""
        return torch.cat([self(part) for part in x.split(self.chunk)])

    def predict(self, x: Tensor) -> Tensor:
        """Class probabilities ``(n, classes)``, in float64."""
        return (self.scale * self.targets(x)).softmax(1)


class Closeness(NamedTuple):
    """The smallest ε for which one regression approximates another."""

    weak: float
    strong: float


def closeness(f: Tensor, g: Tensor, data: Data) -> Closeness:
    r"""The distance between two regressions on data, with :math:`\ell(a, b) = \tfrac12 \|a - b\|^2`.

    .. math:: \epsilon_{weak} = |E\, \ell(f(x), y) - E\, \ell(g(x), y)|, \quad \epsilon_{strong} = E\, \ell(f(x), g(x))

    Nguyen, Chen & Lee, Dataset Meta-Learning from Kernel Ridge-Regression, ICLR 2021.
    """
    y = targets(data.y, f.shape[1])
    ells = [(a - b).square().sum(1).mean().item() / 2 for a, b in ((f, y), (g, y), (f, g))]
    return Closeness(abs(ells[0] - ells[1]), ells[2])


def _apply(function: type[torch.autograd.Function], cosine: Tensor) -> Tensor:
    out: Tensor = function.apply(cosine)
    return out


class _Kappa0(torch.autograd.Function):
    """The arc-cosine kernel of order 0."""

    @staticmethod
    def forward(ctx: Any, cosine: Tensor) -> Tensor:
        # For identical examples the cosine is one up to rounding, which the square root would amplify. The cosine is
        # constant there, so the infinite derivative is replaced by zero.
        alike = cosine > 1 - ROUNDING
        ctx.save_for_backward(cosine, alike)
        return (pi - cosine.masked_fill(alike, 1).clamp_min(-1).acos()) / (2 * pi)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        cosine, alike = ctx.saved_tensors
        slope: Tensor = gradients[0] / (2 * pi * (1 - cosine.square()).clamp_min(ROUNDING).sqrt())
        return slope.masked_fill(alike, 0)


class _Kappa1(torch.autograd.Function):
    """The arc-cosine kernel of order 1; its derivative is that of order 0, which is finite everywhere."""

    @staticmethod
    def forward(ctx: Any, cosine: Tensor) -> Tensor:
        ctx.save_for_backward(cosine)
        c = cosine.clamp(-1, 1)
        return ((1 - c.square()).sqrt() + (pi - c.acos()) * c) / (2 * pi)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (cosine,) = ctx.saved_tensors
        return gradients[0] * _apply(_Kappa0, cosine)
