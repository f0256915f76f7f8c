"""Networks that predict an example by itself, whatever stands beside it."""

from __future__ import annotations

from attar.core.errors import AttarError
from attar.nets import Network


def require_separate(network: Network) -> None:
    """Refuse a network whose prediction for an example changes with the others of its batch.

    What it predicts would depend on how inputs are grouped, and the scores on the order of the test set.
    """
    if not network.separate:
        plain = network.name.replace("-batch", "")
        instead = f"use {plain}" if plain != network.name else "use group or instance norm"
        raise AttarError(
            f"{network.name} predicts an example differently when others stand beside it, as batch norm does, so its "
            f"scores would depend on how inputs are grouped: {instead} for inference (network=, --network)."
        )
