"""Claim: matching variances beside gradients, as LCMat-C does with weight ρ, helps a little at ten images a class."""

from __future__ import annotations

from pathlib import Path

from benchmarks import carry_out, publish, recipe

NAME = "lcmatc_rho"


def main() -> list[Path]:
    """Carry out the recipe."""
    return publish(carry_out(recipe("lcmatc-rho"), NAME), NAME)
