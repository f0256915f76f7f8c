"""Claim: at ten images a class, the weight ρ of the variances that LCMat-C matches beside gradients matters little."""

from __future__ import annotations

from pathlib import Path

from benchmarks import RESULTS, WORK, carry_out, publish

NAME = "lcmatc_rho"


def main() -> list[Path]:
    """Carry out the recipe."""
    return publish(carry_out("lcmatc-rho", NAME, baselines=False), WORK / NAME, RESULTS / NAME)
