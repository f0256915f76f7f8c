"""The jobs of the benchmark ``before_after``: a process that reduces and evaluates for every line of its input.

It is run as a file, with the path of either checkout, so it may only use what both have.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import torch

import attar
from attar.engine import keep_freed_memory
from attar.experts import SMALL, Trajectories, experts


def trained(split: Any, setting: dict[str, Any], root: Path) -> Trajectories:
    """Experts with the default training of this checkout; the two name the number of epochs in different ways."""
    number: dict[str, Any] = {"trajectories": setting["trajectories"], "epochs": setting["expert_epochs"]}
    how: dict[str, Any] = (
        {"schedule": replace(SMALL, **number)} if "schedule" in signature(experts).parameters else number
    )
    return experts(split, setting["network"], root=root, **how)


def run(split: Any, setting: dict[str, Any], job: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Validation scores of one coreset with its recommended inference, and processor seconds of making it."""
    training = attar.Training(steps=setting["training_steps"])
    experts = trained(split, setting, folder) if job["experts"] else None
    begin = time.process_time()
    coreset = attar.reduce(
        split,
        job["method"],
        per_class=job["per_class"],
        seed=job["seed"],
        network=setting["network"],
        options=job["options"],
        descent={"steps": job["steps"]} if job["steps"] else None,
        training=training,
        experts=experts,
    )
    spent = time.process_time() - begin
    posterior = attar.infer(coreset, draws=setting["draws"], seed=10_000 + job["seed"])
    scores = attar.evaluate(posterior, split.val)
    return {"accuracy": scores.accuracy, "nll": scores.nll, "cpu": spent}


def main(setting: dict[str, Any], folder: Path) -> None:
    """One line of JSON for every line of JSON."""
    torch.set_num_threads(1)
    keep_freed_memory()
    warnings.simplefilter("ignore")
    whole = attar.load(setting["data"])
    split = replace(whole, train=whole.train[: setting["train"]])
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(split, setting, json.loads(line), folder)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), Path(sys.argv[2]))
