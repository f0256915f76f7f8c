"""Claim: the noise that the published walk of bpc-cd adds at every step destroys it; none is as good as a little."""

from __future__ import annotations

from pathlib import Path

from benchmarks import RESULTS, WORK, carry_out, publish


def main() -> list[Path]:
    """Carry out the recipe."""
    study = carry_out("temperature", "temperature", baselines=False)
    return publish(study, WORK / "temperature", RESULTS / "temperature")
