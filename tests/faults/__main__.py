"""``python -m tests.faults``: every fault at every operation on files, over all scenes; writes what became of them.

A result file is continued where it ended; a scene of other code begins anew.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attar.core.files import read_json, write_json
from tests.faults.scenes import SCENES, copied
from tests.faults.shim import HARMS, Fault
from tests.faults.stage import Ready, disturbed, problem, ready, stage
from tests.known import ROOT, code

RESULT = ROOT / "benchmarks" / "results" / "trust" / "faults.json"


def main() -> int:
    """Sweep; the exit code is 1 if anything was lost or could not be resumed."""
    words = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    words.add_argument("--scenes", default=",".join(name for name, scene in SCENES.items() if not scene.workers))
    words.add_argument("--output", type=Path, default=RESULT)
    asked = words.parse_args()
    total: dict[str, Any] = read_json(asked.output) if asked.output.exists() else {"seconds": 0, "scenes": {}}
    with stage() as place:
        for name in asked.scenes.split(","):
            begun = time.monotonic()
            kept = total["scenes"].get(name, {})
            total["scenes"][name] = counts = kept if kept.get("code") == code() else _empty()
            for _ in _sweep(ready(name, place), place, counts):
                begun, spent = time.monotonic(), time.monotonic() - begun
                total["seconds"] = round(total["seconds"] + spent, 1)
                write_json(asked.output, total)
            print(
                f"{name}: {counts['operations']} operations, {counts['faults']} faults, {counts['bad']} bad", flush=True
            )
    return int(any(counts["bad"] for counts in total["scenes"].values()))


def _empty() -> dict[str, Any]:
    return {"code": code(), "operations": 0, "faults": 0, **dict.fromkeys(HARMS, 0), "bad": 0, "problems": []}


def _sweep(scene: Ready, place: Path, counts: dict[str, Any]) -> Iterator[None]:
    """All faults of a scene that were not tried yet, one by one."""
    counts["operations"] = len(scene.operations)
    cases = [(at, harm) for at in range(1, len(scene.operations) + 1) for harm in HARMS]
    for at, harm in cases[counts["faults"] :]:
        found = tried(scene, place, Fault(at, harm))
        counts["faults"] += 1
        counts[harm] += 1
        if found:
            counts["bad"] += 1
            counts["problems"].append(f"{harm} at {at}, {scene.operations[at - 1]}: {found}")
            print(f"{scene.name}: {counts['problems'][-1]}\n", flush=True)
        yield


def tried(scene: Ready, place: Path, fault: Fault) -> str:
    """What is wrong after a fault and another run; nothing if all is well."""
    folder = copied(scene.before, place / scene.name)
    return problem(scene, folder, disturbed(scene.name, folder, fault))


if __name__ == "__main__":
    raise SystemExit(main())
