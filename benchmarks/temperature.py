"""Claim: the noise that the published walk of bpc-cd adds at every step destroys it; no noise is the best default."""

from __future__ import annotations

from pathlib import Path

from benchmarks import carry_out


def main() -> list[Path]:
    """Carry out the recipe."""
    return carry_out("temperature", "temperature", baselines=False)
