"""Whether a network predicts an example by itself, whatever stands beside it."""

from __future__ import annotations

import torch
from torch import Generator

from attar.errors import AttarError
from attar.nets import Network

TOLERANCE = 1e-3  #: of the largest logit, far above rounding and far below what batch norm does


@torch.no_grad()
def require_separate(network: Network) -> None:
    """Refuse a network whose prediction for an example changes with the others of its batch.

    Batch norm without running statistics does that: what it predicts would depend on how inputs are grouped, and the
    scores on the order of the test set. One example is put through alone and beside three louder ones.
    """
    gen = Generator().manual_seed(0)
    theta = network.init(gen)
    loudness = torch.tensor([1.0, 4.0, 16.0, 64.0]).view(-1, *[1] * len(network.shape))
    x = loudness * torch.randn(4, *network.shape, generator=gen)
    try:
        alone, beside = network(theta, x[:1])[0], network(theta, x)[0]
        same = torch.allclose(alone, beside, rtol=0, atol=TOLERANCE * float(beside.abs().max()))
    except ValueError:  # batch norm of a single value
        same = False
    if not same:
        plain = network.name.replace("-batch", "")
        instead = f"use {plain}" if plain != network.name else "use group or instance norm"
        raise AttarError(
            f"{network.name} predicts an example differently when others stand beside it, as batch norm does, so its "
            f"scores would depend on how inputs are grouped: {instead} for inference (network=, --network)."
        )
