"""Question: how good are examples, labels and rates that are learnt through training, beside real examples?

``dd`` and ``sldd`` learn ten images of MNIST, for one fixed LeNet and for random ones; ``label-distillation`` learns
labels of 100 images of MNIST, also for Fashion-MNIST; ``tdd`` learns 18 sentences of TREC-6; ``gtn`` learns a generator
that trains networks in 32 steps. Options were chosen on validation data; the test set is used once per run. An
interrupted benchmark resumes.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import RECIPES, carry_out, publish, recipe

NAME = "meta_learning"


def main() -> list[Path]:
    """Carry out every recipe."""
    names = [f"{NAME}/{path.stem}" for path in sorted((RECIPES / NAME).glob("*.toml"))]
    return [path for name in names for path in publish(carry_out(recipe(name), name), name)]
