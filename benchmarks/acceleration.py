"""Claim: what half precision and compiled code are worth is known on the machine at hand only, so it is tried there.

Gradients of three networks on 256 images of Fashion-MNIST, as ``--accelerate auto`` tries them: in a child process for
each mode, with one thread, by turns with float32.
"""

from __future__ import annotations

from pathlib import Path

import attar
from attar.core.files import write_json
from attar.nets.calibrate import AGREES, LIMIT, WINS, Found, Wanted, tried
from attar.nets.fast.modes import MODES
from attar.study.results import machine, versions
from benchmarks import RESULTS

NETWORKS = ("convnet", "mlp", "resnet18")
BATCH = 256


def main() -> list[Path]:
    """Try every mode on every network; what a child found, or why it found nothing."""
    data = attar.load("fashion-mnist", download=False).train[:BATCH]
    found = {}
    for name in NETWORKS:
        net = attar.network(name, data.spec)
        told = {mode: tried(Wanted(mode, net, data, "cross-entropy", 1)) for mode in MODES}
        found[name] = {mode: said._asdict() if isinstance(said, Found) else said for mode, said in told.items()}
    path = RESULTS / "acceleration" / "acceleration.json"
    write_json(
        path,
        {
            "command": "python -m benchmarks acceleration",
            "setting": {"data": "fashion-mnist", "batch": BATCH, "threads": 1},
            "limits": {"wins": WINS, "agrees": AGREES, "seconds": LIMIT},
            "found": found,
            "versions": versions(),
            "machine": machine(),
        },
    )
    return [path]
