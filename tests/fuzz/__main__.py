"""``python -m tests.fuzz``: mutate files of every format for some minutes, and write what became of them.

Inputs that are not handled well are added to the corpus, one for each place in the code. ``--case`` repeats one case of
a seed, with its traceback. A result file of the same seed and code is continued.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from hashlib import blake2b
from pathlib import Path
from random import SystemRandom
from typing import Any

import torch

from attar.core.files import read_json, write_json
from tests.fuzz.guard import BAD, BUDGET, READ, REFUSED, TARGETS, Outcome, mutated, run, until
from tests.known import ROOT, code

CORPUS = Path(__file__).with_name("corpus")
RESULT = ROOT / "benchmarks" / "results" / "trust" / "fuzz.json"
EVERY = 60.0  #: seconds between two writes of the result


def main() -> int:
    """Fuzz, or repeat a case; the exit code is 1 if any input was handled badly."""
    words = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    words.add_argument("--minutes", type=float, default=10)
    words.add_argument("--seed", type=int, default=SystemRandom().randrange(10**6))
    words.add_argument("--case", type=int)
    words.add_argument("--output", type=Path, default=RESULT)
    asked = words.parse_args()
    torch.set_num_threads(1)
    if asked.case is not None:
        (outcome,) = run([(asked.case, mutated(asked.seed, asked.case))])
        print(f"{outcome.target}: {outcome.verdict} {outcome.said}")
        return int(outcome.verdict == BAD)
    return _fuzz(asked.minutes, asked.seed, asked.output)


def _fuzz(minutes: float, seed: int, path: Path) -> int:
    kept = read_json(path) if path.exists() else {}
    total = kept if (kept.get("seed"), kept.get("code")) == (seed, code()) else _empty(seed)
    places: set[str] = set()
    begun = written = time.monotonic()
    spent, number = total["seconds"], total["inputs"]
    for outcome in run(until(60 * minutes, seed, number)):
        _count(total, outcome)
        if outcome.verdict == BAD and (place := _place(outcome)) not in places:
            places.add(place)
            print(f"seed {seed} case {outcome.number} of {outcome.target}: {outcome.said}\n", flush=True)
            _keep(seed, outcome)
        if time.monotonic() - written > EVERY:
            written = time.monotonic()
            write_json(path, total | {"seconds": round(spent + written - begun)})
    write_json(path, total | {"seconds": round(spent + time.monotonic() - begun)})
    print(f"seed {seed}: {total['inputs']} inputs, {total[BAD]} handled badly; {path}")
    return int(total[BAD] > 0)


def _empty(seed: int) -> dict[str, Any]:
    counts = {"inputs": 0, READ: 0, REFUSED: 0, BAD: 0, "crashes": 0, "hangs": 0, "executed": 0}
    return {
        "seed": seed,
        "code": code(),
        **counts,
        "budget": BUDGET,
        "peak": 0,
        "seconds": 0,
        "targets": dict.fromkeys(TARGETS, 0),
    }


def _count(total: dict[str, Any], outcome: Outcome) -> None:
    total["inputs"] += 1
    total[outcome.verdict] += 1
    total["crashes"] += outcome.said.startswith("the process ended")
    total["hangs"] += outcome.said == "hung"
    total["executed"] += outcome.executed
    total["peak"] = max(total["peak"], outcome.grown)
    total["targets"][outcome.target] += 1


def _place(outcome: Outcome) -> str:
    """Where in the code a case failed; one input is kept for each."""
    lines = [line.strip() for line in outcome.said.splitlines() if line.strip().startswith("File ")]
    last = outcome.said.strip().splitlines()[-1].partition(":")[0] if outcome.said.strip() else ""
    return f"{outcome.target} {lines[-1] if lines else ''} {last}"


def _keep(seed: int, outcome: Outcome) -> None:
    case = mutated(seed, outcome.number)
    name = f"{blake2b(case.content, digest_size=4).hexdigest()}@{case.file.replace('/', '+')}"
    (CORPUS / case.target).mkdir(parents=True, exist_ok=True)
    (CORPUS / case.target / name).write_bytes(case.content)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # threads of libraries may not end after forks
