"""Claim: bpc-cd fails with the noise of the published Langevin steps; no noise is as good as a little."""

from __future__ import annotations

from pathlib import Path

from benchmarks import carry_out, publish, recipe

NAME = "temperature"


def main() -> list[Path]:
    """Carry out the recipe."""
    return publish(carry_out(recipe("temperature"), NAME), NAME)
