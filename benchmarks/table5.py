"""Claim: coresets made with a ConvNet also train other networks, mostly better than as many random images do."""

from __future__ import annotations

from pathlib import Path

from benchmarks import carry_out, publish, recipe

NAME = "table5"


def main() -> list[Path]:
    """Carry out the recipe."""
    return publish(carry_out(recipe("table5-small"), NAME), NAME)
