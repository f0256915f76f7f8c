"""Claim: the noise that the published walk of bpc-cd adds at every step destroys it; none is as good as a little."""

from __future__ import annotations

from pathlib import Path

from benchmarks import carry_out, publish, recipe

NAME = "temperature"


def main() -> list[Path]:
    """Carry out the recipe."""
    return publish(carry_out(recipe("temperature"), NAME), NAME)
