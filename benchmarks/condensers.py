"""Claim: on Fashion-MNIST, what every condensation method learns beats as many random images, on two cores.

All rows share one small network and one training budget; the steps of each method are those of the recipe, chosen on
validation images so that a coreset takes minutes. The test set is read once a run. A run that is cut off goes on.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import carry_out


def main() -> list[Path]:
    """Carry out the recipe, with other networks on the coresets of ten images a class."""
    return carry_out("condensers-small", "condensers")
