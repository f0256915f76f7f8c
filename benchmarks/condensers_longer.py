"""Claim: with four times the steps, what DSA and MTT learn at ten images a class gets better."""

from __future__ import annotations

from pathlib import Path

from benchmarks import RESULTS, WORK, carry_out, publish

NAME = "condensers_longer"


def main() -> list[Path]:
    """Carry out the recipe."""
    return publish(carry_out("condensers-longer", NAME, baselines=False), WORK / NAME, RESULTS / NAME)
