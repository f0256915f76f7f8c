"""``python -m tests.faults.kills``: signals at random moments of all commands; each must end in the same bits.

Every round runs a command, kills it up to three times at random moments, and then lets it finish. A result file of the
same seed and code is continued.
"""

from __future__ import annotations

import argparse
import os
import signal
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

from attar.core.cost import resident
from attar.core.files import read_json, write_json
from tests.faults.scenes import SCENES, copied
from tests.faults.stage import Ended, Ready, ended, forked, over, problem, ready, stage
from tests.known import ROOT, code, wait_until

RESULT = ROOT / "benchmarks" / "results" / "trust" / "kills.json"
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
SLOWER = 1.03  #: a command that was not faster than expected may take longer
OFTEN = {name: 1 if scene.workers else 6 for name, scene in SCENES.items()}  #: workers load all libraries again


def main() -> int:
    """Kill; the exit code is 1 if anything was lost or could not be resumed."""
    words = argparse.ArgumentParser(prog="python -m tests.faults.kills", description=__doc__)
    words.add_argument("--kills", type=int, default=1000)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--output", type=Path, default=RESULT)
    asked = words.parse_args()
    kept = read_json(asked.output) if asked.output.exists() else {}
    now = code()
    total = kept if (kept.get("seed"), kept.get("code")) == (asked.seed, now) else _empty(asked.seed)
    with stage() as place:
        scenes: dict[str, Ready] = {}
        while total["kills"] < asked.kills:
            begun = time.monotonic()
            chance = Random(f"{asked.seed} {total['rounds']}")
            name = chance.choice([name for name, often in OFTEN.items() for _ in range(often)])
            scenes[name] = scenes.get(name) or ready(name, place)
            found, seconds = killed(scenes[name], place, chance, total)
            scenes[name] = scenes[name]._replace(seconds=seconds)
            assert code() == now, "the code changed under this run, and workers read it anew: run a copy of it"
            total["rounds"] += 1
            if found:
                total["bad"] += 1
                total["problems"].append(f"round {total['rounds'] - 1}, {name}: {found}")
                print(total["problems"][-1], flush=True)
            total["seconds"] = round(total["seconds"] + time.monotonic() - begun, 1)
            total["memory"] = max(total["memory"], resident())
            write_json(asked.output, total)
    print(f"{total['kills']} kills in {total['rounds']} rounds, {total['bad']} bad; {asked.output}")
    return int(total["bad"] > 0)


def _empty(seed: int) -> dict[str, Any]:
    signals = {each.name: 0 for each in SIGNALS}
    counts = {"rounds": 0, "kills": 0, "signals": signals, "scenes": dict.fromkeys(SCENES, 0)}
    return {"seed": seed, "code": code(), **counts, "bad": 0, "problems": [], "memory": 0, "seconds": 0.0}


def killed(scene: Ready, place: Path, chance: Random, total: dict[str, Any]) -> tuple[str, float]:
    """What is wrong after kills at random moments and a last, undisturbed run; nothing if all is well.

    Also the seconds that the command takes now: other programs begin and end.
    """
    folder = copied(scene.before, place / scene.name)
    out = folder.with_name(folder.name + ".out")
    code, seconds = 0, SLOWER * scene.seconds
    for attempt in range(chance.randint(1, 3)):
        begun, process = time.monotonic(), forked(lambda: _run(scene.name, folder), out)
        if over(process, chance.uniform(0, scene.seconds)):  # it was faster
            code = ended(process)
            seconds = seconds if attempt else time.monotonic() - begun
            break
        sent = chance.choice(SIGNALS)
        os.kill(process, sent)
        code = ended(process)
        total["kills"] += 1
        total["signals"][sent.name] += 1
        total["scenes"][scene.name] += 1
        wait_until(lambda group=process: not _any_left(group))  # workers end with their parent
    return problem(scene, folder, Ended(code, out.read_text(errors="replace"), [])), seconds


def _run(name: str, folder: Path) -> None:
    os.chdir(folder)
    SCENES[name].run()


def _any_left(group: int) -> bool:
    with suppress(ProcessLookupError):
        os.killpg(group, 0)
        return True
    return False


if __name__ == "__main__":
    raise SystemExit(main())
