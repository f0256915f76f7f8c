"""A run that is killed without warning, again and again, ends in the bits of an undisturbed one."""

import random
import time
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest
import torch

from attar import Coreset
from tests.known import HANG, python

RUN = """
import sys, torch, attar
torch.set_num_threads(1)
folder = sys.argv[1]
def loud(steps):
    for step in steps:
        print(step.number, flush=True)
        sys.stdin.readline()  # one line is leave for one step; at its end, for all
        yield step
attar.reduce(
    attar.load("digits"), "dc", per_class=1, seed=4, network="convnet-d1w8",
    options={"batch": 8, "matches": 2, "net_steps": 1},
    descent={"steps": 120, "optimiser": "adam", "schedule": "cosine", "lr": 0.01},
    checkpoint=f"{folder}/state.safetensors", every=3, observers=[loud],
).save(f"{folder}/coreset.safetensors")
"""


def finish(folder: Path) -> None:
    _, error = (process := python(RUN, folder, stdin=DEVNULL)).communicate(timeout=HANG)
    assert process.returncode == 0, error


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_run_killed_at_random_moments_ends_in_the_same_bits(kills: int, tmp_path: Path) -> None:
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    finish(undisturbed)
    chance, firsts = random.Random(kills), []
    for kill in range(kills):
        process = python(RUN, tmp_path, stdin=PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        firsts.append(int(process.stdout.readline()))
        for _ in range(chance.randrange(100 // kills)):  # so that the kills go round before the run is done
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline()
        process.stdin.write("\n")  # leave for one step more, and not for the next
        process.stdin.flush()
        time.sleep(chance.uniform(0, 0.05))  # at any moment of that step, or of a save
        process.kill()
        process.communicate(timeout=HANG)
        assert process.returncode == -9, f"kill {kill} came too late"
    assert not (tmp_path / "coreset.safetensors").exists()
    finish(tmp_path)
    killed, whole = (Coreset.load(folder / "coreset.safetensors") for folder in (tmp_path, undisturbed))
    assert firsts == sorted(firsts)
    assert firsts[-1] > 1, "no run was resumed"
    assert torch.equal(killed.data.x, whole.data.x)
    assert torch.equal(killed.data.y, whole.data.y)
