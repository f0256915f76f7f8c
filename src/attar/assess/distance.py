"""Distances between the predictions of a coreset's posterior and of the full data's."""

from __future__ import annotations

from pydantic.dataclasses import dataclass
from torch import Tensor

from attar.assess.metrics import TINY, check_rows
from attar.core.errors import AttarError


@dataclass(frozen=True)
class Distance:
    """Distances between two predictive distributions, as means over the same inputs."""

    symmetric_kl: float  #: ½ (KL(p‖q) + KL(q‖p)) in nats: 0 if equal
    total_variation: float  #: ½ Σ|p − q|, the largest difference in the probability of any event: from 0 to 1
    agreement: float  #: share of inputs with the same most likely class

    def __str__(self) -> str:
        return (
            f"symmetric KL {self.symmetric_kl:.3f}  total variation {self.total_variation:.3f}  "
            f"agreement {self.agreement:.3f}"
        )


def distance(ours: Tensor, theirs: Tensor) -> Distance:
    r"""Distances between predictions p and q of two posteriors on the same inputs, both ``(n, classes)``.

    .. math:: \tfrac12 (KL(p \| q) + KL(q \| p)) = \tfrac12 \sum_c (p_c - q_c)(\log p_c - \log q_c)

    with log 0 replaced by that of the smallest float, as for the NLL.
    """
    if ours.shape != theirs.shape:
        raise AttarError(
            f"Distances need two predictions on the same inputs, got shapes {tuple(ours.shape)} and "
            f"{tuple(theirs.shape)}: predict both on one set of examples."
        )
    p, q = check_rows(ours), check_rows(theirs)
    gap = p - q
    kl = (gap * (p.clamp_min(TINY).log() - q.clamp_min(TINY).log())).sum(1) / 2
    same = p.argmax(1) == q.argmax(1)
    return Distance(float(kl.mean()), float(gap.abs().sum(1).mean()) / 2, float(same.double().mean()))


def distillation_ratio(accuracy: float, full: float) -> float:
    r""":math:`r_M = 100 \cdot \mathrm{acc}(\text{coreset}) / \mathrm{acc}(\text{full})`, in percent."""
    if not (0 <= accuracy <= 1 and 0 < full <= 1):
        raise AttarError(f"Accuracies must lie between 0 and 1, the full data's above 0, got {accuracy} and {full}.")
    return 100 * accuracy / full
