"""Networks whose prediction for an example does not depend on the rest of the batch."""

from __future__ import annotations

from attar.core.errors import AttarError
from attar.nets import Network


def require_separate(network: Network) -> None:
    """Refuse a network whose prediction for an example depends on the rest of the batch.

    Its scores would depend on the order of the test set.
    """
    if not network.separate:
        plain = network.name.replace("-batch", "")
        instead = f"use {plain}" if plain != network.name else "use group or instance norm"
        raise AttarError(
            f"The predictions of {network.name} for one example depend on the rest of the batch, as with batch norm, "
            f"so its scores would depend on the order of the test set: {instead} for inference (network=, --network)."
        )
