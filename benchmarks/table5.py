"""Claim: what one ConvNet distilled serves other networks too, mostly better than as many random images do."""

from __future__ import annotations

from pathlib import Path

from benchmarks import RESULTS, WORK, carry_out, publish


def main() -> list[Path]:
    """Carry out the recipe."""
    return publish(carry_out("table5-small", "table5", baselines=False), WORK / "table5", RESULTS / "table5")
