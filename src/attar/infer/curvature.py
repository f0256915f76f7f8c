r"""The curvature of a likelihood at a mode: the generalised Gauss-Newton matrix, in three structures.

.. math:: G = \sum_i w_i\, J_i^\top \Lambda_i J_i, \quad J_i = \partial f(\theta, x_i) / \partial \theta, \quad
    \Lambda_i = \partial^2 (-\log p(y_i \mid f)) / \partial f^2 = S_i S_i^\top

For softmax this is also the Fisher matrix. Everything is in units of the prior, :math:`z = (\theta - \mu) / \sigma`,
so the posterior precision is :math:`G + \delta I` for every structure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple, Protocol

import torch
from torch import Tensor, nn
from torch.func import grad, vmap
from torch.nn.functional import unfold

from attar.core.errors import AttarError
from attar.nets import Network
from attar.nets.layers import with_ones
from attar.nets.network import Layer

BUDGET = 4 << 30  #: bytes that a structure may use
Root = Callable[[Tensor], Tensor]


def softmax_root(logits: Tensor) -> Tensor:
    r""":math:`S = \mathrm{diag}(\sqrt p) - p \sqrt p^\top`, whose square is :math:`\mathrm{diag}(p) - p p^\top`."""
    p = logits.softmax(1)
    return torch.diag_embed(p.sqrt()) - p[:, :, None] * p.sqrt()[:, None, :]


class Mode(NamedTuple):
    """A mode of a posterior, and what the curvature there depends on."""

    network: Network
    theta: Tensor  #: (p,)
    x: Tensor  #: (n, ...)
    weights: Tensor  #: (n,), weights of the examples
    std: Tensor  #: (p,), the deviation of the prior at precision one
    root: Root = softmax_root  #: from outputs ``(n, classes)`` to S ``(n, classes, classes)``

    def chunks(self, numbers: int) -> Iterator[Mode]:
        """The same, a few examples at a time, if one example needs this many numbers."""
        size = max(1, BUDGET // 16 // (numbers * self.theta.element_size()))
        for x, weights in zip(self.x.split(size), self.weights.split(size), strict=True):
            yield self._replace(x=x, weights=weights)


class Block(Protocol):
    """A block of parameters and its curvature; curvature between blocks is ignored."""

    @property
    def index(self) -> Tensor:
        """Their indices in theta, ``(size,)``."""
        ...

    @property
    def values(self) -> Tensor:
        """All eigenvalues of G, ``(size,)``, in float64."""
        ...

    def colour(self, noise: Tensor, precision: float) -> Tensor:
        r"""Turn white noise ``(k, size)`` into noise with covariance :math:`(G + \delta I)^{-1}`."""
        ...


@dataclass(frozen=True)
class Diagonal:
    """Independent parameters."""

    index: Tensor
    values: Tensor

    def colour(self, noise: Tensor, precision: float) -> Tensor:
        return noise * (self.values + precision).rsqrt()


@dataclass(frozen=True)
class Full:
    """Parameters with all their covariances: the eigenvectors ``(size, rank)`` of the first eigenvalues."""

    index: Tensor
    values: Tensor
    vectors: Tensor

    def colour(self, noise: Tensor, precision: float) -> Tensor:
        shrink = (self.values[: self.vectors.shape[1]] + precision).rsqrt() - 1 / sqrt(precision)
        return noise / sqrt(precision) + (noise @ self.vectors * shrink) @ self.vectors.T


@dataclass(frozen=True)
class Kron:
    r"""One layer: :math:`G \approx B \otimes A`, from second moments of output gradients (B) and of inputs (A)."""

    index: Tensor
    outputs: tuple[Tensor, Tensor]  #: eigenvalues and eigenvectors of B
    inputs: tuple[Tensor, Tensor]  #: of A

    @property
    def values(self) -> Tensor:
        return torch.outer(self.outputs[0], self.inputs[0]).flatten()

    def colour(self, noise: Tensor, precision: float) -> Tensor:
        scaled = (noise * (self.values + precision).rsqrt()).view(len(noise), len(self.outputs[0]), -1)
        return (self.outputs[1] @ scaled @ self.inputs[1].T).flatten(1)


def diagonal(mode: Mode) -> list[Block]:
    """The exact diagonal of G over all parameters."""
    net, total = mode.network, torch.zeros_like(mode.theta, dtype=torch.float64)
    slopes = vmap(grad(lambda theta, x, s: net(theta, x[None])[0] @ s), (None, 0, 0))
    for part in mode.chunks(3 * (net.size + net.activations)):
        for s in mode.root(net(mode.theta, part.x)).unbind(2):
            slope = slopes(mode.theta, part.x, s)
            total += (part.weights[:, None] * slope.square()).sum(0, dtype=torch.float64)
    return [Diagonal(torch.arange(net.size, device=total.device), total * mode.std.square())]


def last_layer(mode: Mode) -> list[Block]:
    """All of G over the last linear layer, through its Gram matrix if there are few examples."""
    net, index = mode.network, mode.network.head_index().to(mode.x.device)
    size, rows = index.numel(), len(mode.x) * net.classes
    needed = 8 * (3 * rows * (size + rows) if rows < size else 4 * size**2)
    if needed > BUDGET:
        raise AttarError(
            f"The last layer's covariance over {len(mode.x)} examples takes {needed / 2**30:.1f} GiB: "
            "choose structure=kron or structure=diagonal."
        )
    jacobians = (_last_jacobian(part, index) for part in mode.chunks(2 * (net.activations + net.classes * size)))
    if rows >= size:
        values, vectors = torch.linalg.eigh(sum(j.T @ j for j in jacobians))
        return [Full(index.flatten(), values.clamp_min(0), vectors)]
    jacobian = torch.cat(list(jacobians))
    values, vectors = torch.linalg.eigh(jacobian @ jacobian.T)
    seen = values > 1e-12 * values[-1]
    basis = jacobian.T @ (vectors[:, seen] * values[seen].rsqrt())
    padded = torch.cat([values[seen], values.new_zeros(size - basis.shape[1])])
    return [Full(index.flatten(), padded, basis)]


def _last_jacobian(mode: Mode, index: Tensor) -> Tensor:
    r"""The rows :math:`\sqrt{w_i}\, S_i^\top J_i` of the last layer, ``(n · classes, size)``."""
    features = mode.network.features(mode.theta, mode.x).double()
    inputs = with_ones(features, index.shape[1]) * mode.std[index[0]]
    s = mode.root(mode.network(mode.theta, mode.x)).double() * mode.weights.sqrt()[:, None, None]
    return torch.einsum("nck,nh->nkch", s, inputs).flatten(2).flatten(0, 1)


def kron(mode: Mode) -> list[Block]:
    r"""A Kronecker product for every linear and convolution layer, the exact diagonal for all other parameters.

    .. math:: G \approx \tfrac{1}{\sum_i w_i} \Big(\sum_i w_i \tfrac1T \sum_t b_{it} b_{it}^\top\Big) \otimes
        \Big(\sum_i w_i \sum_t a_{it} a_{it}^\top\Big)

    with the inputs a and the outputs' gradients b at the T places where a layer is applied. The prior is added to the
    products of eigenvalues, exactly, so no damping has to be split between the factors.
    """
    # A gradient of every logit, and the patches that a 3x3 kernel sees, both once more in float64.
    numbers = (3 * mode.network.classes + 27) * mode.network.activations
    factors: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
    for part in mode.chunks(numbers):
        for layer, a, b in _covariances(part):
            key = int(layer.index[0, 0])
            _, before_a, before_b = factors.get(key, (layer.index, torch.zeros_like(a), torch.zeros_like(b)))
            factors[key] = (layer.index, before_a + a, before_b + b)
    blocks: list[Block] = []
    rest = torch.ones(mode.network.size, dtype=torch.bool)
    for index, a, b in factors.values():
        std = mode.std[index[0]]
        rest[index] = False
        a = std[:, None] * a * std / mode.weights.sum()
        blocks.append(Kron(index.flatten().to(mode.x.device), _eigen(b), _eigen(a)))
    if bool(rest.any()):
        (all_of_it,) = diagonal(mode)
        index = rest.nonzero().flatten().to(mode.x.device)
        blocks.append(Diagonal(index, all_of_it.values[index]))
    return blocks


def _covariances(mode: Mode) -> Iterator[tuple[Layer, Tensor, Tensor]]:
    """Every layer, with the second moments of its inputs and of its output gradients, summed over examples."""
    theta = mode.theta.detach().requires_grad_()
    logits, seen = mode.network.layers(theta, mode.x)
    plain = [layer for layer in seen if layer.index.numel()]
    layers = [layer for layer in plain if _factors(layer, plain, len(mode.x))]
    s = mode.root(logits.detach()) * mode.weights.sqrt()[:, None, None]
    outputs = [layer.output for layer in layers]
    if not outputs:
        return
    slopes = [
        torch.autograd.grad(logits, outputs, column, retain_graph=True, materialize_grads=True)
        for column in s.unbind(2)
    ]
    for layer, *columns in zip(layers, *slopes, strict=True):
        a = with_ones(_places(layer.input.detach(), layer.module), layer.index.shape[1]).double()
        b = [_by_place(column, layer.module).double() for column in columns]
        yield (
            layer,
            torch.einsum("n,nti,ntj->ij", mode.weights.double(), a, a),
            sum((torch.einsum("nti,ntj->ij", g, g) for g in b), a.new_zeros(())) / a.shape[1],
        )


def _factors(layer: Layer, layers: list[Layer], n: int) -> bool:
    """Whether a layer is applied once, to each example separately, as a plain matrix."""
    once = sum(int(other.index[0, 0]) == int(layer.index[0, 0]) for other in layers) == 1
    module = layer.module
    plain = isinstance(module, nn.Linear) or (
        module.groups == 1 and module.padding_mode == "zeros" and not isinstance(module.padding, str)
    )
    return once and plain and len(layer.input) == n


def _places(inputs: Tensor, module: nn.Linear | nn.Conv2d) -> Tensor:
    """What the layer's matrix is applied to, ``(n, places, inputs)``."""
    if isinstance(module, nn.Linear):
        return inputs.reshape(len(inputs), -1, inputs.shape[-1])
    assert not isinstance(module.padding, str)
    return unfold(inputs, module.kernel_size, module.dilation, module.padding, module.stride).transpose(1, 2)


def _by_place(outputs: Tensor, module: nn.Linear | nn.Conv2d) -> Tensor:
    if isinstance(module, nn.Linear):
        return outputs.reshape(len(outputs), -1, outputs.shape[-1])
    return outputs.flatten(2).transpose(1, 2)


def _eigen(matrix: Tensor) -> tuple[Tensor, Tensor]:
    values, vectors = torch.linalg.eigh(matrix)
    return values.clamp_min(0), vectors


STRUCTURES: dict[str, Callable[[Mode], list[Block]]] = {
    "last-layer": last_layer,
    "diagonal": diagonal,
    "kron": kron,
}
