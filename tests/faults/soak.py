"""``python -m tests.faults.soak``: the same work again and again in one process, which must not grow.

Every round loads a file, selects, condenses, infers, evaluates, saves, exports, reads again and refuses a damaged file.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

import attar
from attar import AttarError, Coreset, Training
from attar.core.cost import resident
from attar.core.files import write_json
from attar.infer import Draws
from tests.known import ROOT, gaussians

RESULT = ROOT / "benchmarks" / "results" / "trust" / "soak.json"
QUICK = Training(steps=5)
POINTS = 200  #: measurements that are kept


def main() -> int:
    """Soak; the exit code is 1 if anything grew."""
    words = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    words.add_argument("--hours", type=float, default=1)
    words.add_argument("--output", type=Path, default=RESULT)
    asked = words.parse_args()
    torch.set_num_threads(1)
    begun, seen = time.monotonic(), list[tuple[int, int, int]]()
    with tempfile.TemporaryDirectory() as made:
        while time.monotonic() - begun < 3600 * asked.hours or len(seen) < 8:
            once(Path(made))
            seen.append(held())
    found = summary(seen) | {"seconds": round(time.monotonic() - begun)}
    write_json(asked.output, found)
    print(f"{found['rounds']} rounds, flat: {found['flat']}; {asked.output}")
    return int(not found["flat"])


def once(folder: Path) -> None:
    """One round of everything."""
    data = gaussians(8)
    np.savez(folder / "a.npz", x=data.x.numpy(), y=data.y.numpy())
    attar.load(folder / "a.npz")
    attar.reduce(data, "herding", per_class=1, network="mlp-d1w4", training=QUICK)
    made = attar.reduce(data, "dm", per_class=1, network="mlp-d1w4", training=QUICK, descent={"steps": 3})
    made.save(folder / "d.safetensors")
    again = Coreset.load(folder / "d.safetensors")
    again.export(folder / "d.csv")
    posterior = attar.infer(again, draws=2)
    attar.evaluate(posterior, data)
    posterior.save(folder / "p.safetensors")
    (folder / "b.safetensors").write_bytes((folder / "p.safetensors").read_bytes()[:-9])
    with suppress(AttarError):
        Draws.load(folder / "b.safetensors")
        raise AssertionError("a damaged file was read")


def held() -> tuple[int, int, int]:
    """Resident memory, open files and threads of this process."""
    return resident(), len(list(Path("/proc/self/fd").iterdir())), threading.active_count()


def summary(seen: list[tuple[int, int, int]]) -> dict[str, Any]:
    """The first and last quarter after a start, in which libraries are loaded; flat if neither holds more."""
    steady = seen[len(seen) // 4 :]
    part = max(1, len(steady) // 4)
    memory = [round(median(one[0] for one in some)) for some in (steady[:part], steady[-part:])]
    files, threads = ([max(one[k] for one in some) for some in (steady[:part], steady[-part:])] for k in (1, 2))
    flat = memory[1] < 1.02 * memory[0] and files[1] <= files[0] and threads[1] <= threads[0]
    points = [one[0] for one in seen[:: max(1, len(seen) // POINTS)]]
    return {"rounds": len(seen), "flat": flat, "memory": memory, "files": files, "threads": threads, "points": points}


if __name__ == "__main__":
    raise SystemExit(main())
