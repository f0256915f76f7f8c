"""Weight normalisation: the length and the direction of every row of weights are separate parameters."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

from attar.core.errors import AttarError

LENGTH, DIRECTION = (f"parametrizations.weight.original{k}" for k in range(2))  #: names of g and V within a layer


class WeightNorm(nn.Module):
    r"""Weights :math:`W = g V / \|V\|`, row by row (Salimans & Kingma, NeurIPS 2016).

    By plain operations: ``torch.nn.utils.parametrizations.weight_norm`` has no rule for ``vmap``.
    """

    def forward(self, g: Tensor, v: Tensor) -> Tensor:
        rows = v.flatten(1)
        weight: Tensor = g[:, None] * rows / rows.norm(dim=1, keepdim=True)
        return weight.reshape(v.shape)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """The lengths g ``(outputs,)`` and V, which is the weight itself."""
        return weight.flatten(1).norm(dim=1), weight


def normalise(layer: nn.Module) -> nn.Module:
    """The same linear or convolution layer with normalised weights, whose values do not change."""
    return register_parametrization(layer, "weight", WeightNorm())


def normalised(build: Callable[[], nn.Module], name: str) -> nn.Module:
    """A new network with normalised linear and convolution layers, which computes the same logits as without.

    The last linear layer stays plain: closed forms and outputs for new classes need its weights in ``theta``.
    """
    module = build()
    layers = [part for part in module.modules() if isinstance(part, nn.Linear | nn.Conv2d)][:-1]
    if not layers:
        raise AttarError(f"{name} has no layer before its last to normalise: leave weightnorm out.")
    for part in layers:
        normalise(part)
    return module


def direction(name: str) -> str:
    """The name of V in the layer of this length or bias, if its weights are normalised."""
    return name.removesuffix("bias").removesuffix(LENGTH) + DIRECTION
