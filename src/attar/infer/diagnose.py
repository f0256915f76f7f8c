"""Whether chains have mixed, judged by what they predict: parameters of a network may differ and mean the same."""

from __future__ import annotations

from typing import Any, NamedTuple

from torch import Tensor

from attar.nets import Network


class MixingWarning(UserWarning):
    """Chains that have not mixed, in words."""


class Chains(NamedTuple):
    """What a walk leaves behind."""

    theta: Tensor  #: (chains, kept, p)
    potential: Tensor  #: (chains, kept), the exact U of every kept vector
    acceptance: float | None  #: share of accepted proposals after warm-up, where there are proposals


def diagnose(network: Network, chains: Chains, x: Tensor) -> dict[str, Any]:
    """Notes on how the chains did."""
    return {"acceptance": chains.acceptance, "trace": chains.potential.tolist()}
