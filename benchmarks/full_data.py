"""Question: what do all images of Fashion-MNIST give with the network of `pseudo_coresets` and long training?

It is trained for as long as accuracy on validation images rises, 12 epochs at most; the test set is used once. Networks
are kept in the store of references, so an interrupted benchmark resumes.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from attar.assess.converged import converged
from attar.assess.score import evaluate
from attar.core.files import write_json
from attar.engine import keep_freed_memory
from attar.nets import network
from attar.study.results import machine, versions
from benchmarks import RESULTS
from benchmarks.pseudo_coresets import SPEC

NAME = "full_data"
DRAWS, SEED, EPOCHS = 3, 0, 12  # of 12 epochs at most, for two cores


def main() -> list[Path]:
    """Train, choose and score; write one JSON file."""
    keep_freed_memory()
    split = SPEC.load_data()
    found = converged(split, network(str(SPEC.network), split.spec), SPEC.training, DRAWS, SEED, EPOCHS)
    scores = evaluate(found.posterior, split.test)
    setting = {"data": SPEC.data, "network": SPEC.network, "training": asdict(SPEC.training)}
    result = {
        "command": f"python -m benchmarks {NAME}",
        "setting": {**setting, "draws": DRAWS, "seed": SEED, "epochs": EPOCHS},
        "steps": found.steps,
        "rungs": [rung._asdict() for rung in found.rungs],
        "rising": found.rising,
        "accuracy": scores.accuracy,
        "nll": scores.nll,
        "cost": asdict(found.cost),
        "versions": versions(),
        "machine": machine(),
    }
    path = RESULTS / NAME / "fashion-mnist.json"
    write_json(path, result)
    return [path]
