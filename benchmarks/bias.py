"""Question: what does a reduction do to single classes, where training classes are rare or labels are wrong?

Fashion-MNIST with ten times as many training examples of the first class as of the last, and with 20 % of the training
labels changed to another class; validation and test sets are clean. Accuracy of every class and of the worst, for full
data (before reduction) and for every method (after it). An interrupted benchmark resumes.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import carry_out, publish, recipe

NAMES = ("bias-imbalance", "bias-flips")


def main() -> list[Path]:
    """Carry out both recipes."""
    places = {name: f"bias/{name}" for name in NAMES}
    return [path for name, place in places.items() for path in publish(carry_out(recipe(name), place), place)]
