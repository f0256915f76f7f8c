"""Kernels of infinitely wide networks and others, and ridge regression with them, in float64."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from attar.condense.wide import Kernel, convolutional, fully_connected
from attar.core.errors import AttarError, unknown
from attar.data import Data, Spec
from attar.infer.head import regressors
from attar.nets import Network
from attar.nets.losses import targets

JITTERS = (0.0, *(10.0**k for k in range(-14, -5)))  # tried in this order, in units of the mean diagonal
LARGEST = 2**31  # bytes of a kernel matrix


def rbf(a: Tensor, b: Tensor) -> Tensor:
    r""":math:`k(x, x') = \exp(-\|x - x'\|^2 / d)` for examples of d numbers."""
    a, b = a.flatten(1).double(), b.flatten(1).double()
    squares = a.square().sum(1)[:, None] + b.square().sum(1) - 2 * a @ b.T
    return (-squares.clamp_min(0) / a.shape[1]).exp()


def features(network: Network, theta: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Inner products of a network's features, in the units of its last layer's prior."""
    left, right = (regressors(network, network.features(theta, x)) for x in (a, b))
    return left @ right.T


FIXED: dict[str, Kernel] = {
    "rbf": rbf,
    **{f"nngp{depth}": partial(fully_connected, depth, False) for depth in (1, 2, 3)},
    **{f"ntk{depth}": partial(fully_connected, depth, True) for depth in (1, 2, 3)},
    **{f"cnngp{depth}": partial(convolutional, depth, False) for depth in (1, 2, 3)},
    **{f"cntk{depth}": partial(convolutional, depth, True) for depth in (1, 2, 3)},
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
