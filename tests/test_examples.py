"""Every example runs as its reader would run it, and shows what it says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from attar import Coreset
from tests.known import ROOT

EXAMPLES = ROOT / "examples"


def run(name: str, folder: Path) -> str:
    """Run an example in ``folder``, on one thread, with warnings as errors."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py")]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_example_is_run_below() -> None:
    below = Path(__file__).read_text(encoding="utf-8")
    assert [path.stem for path in EXAMPLES.glob("*.py") if f'run("{path.stem}"' not in below] == []


def test_quickstart_shows_that_ten_learnt_digits_beat_ten_random_ones(tmp_path: Path) -> None:
    said = run("quickstart", tmp_path)
    learnt, random = (
        float(re.findall(rf"^{name} +accuracy ([\d.]+)", said, re.MULTILINE)[0]) for name in ("dc", "uniform")
    )
    assert learnt > random
    assert len(Coreset.load(tmp_path / "digits-dc-1.safetensors")) == 10


def test_own_data_gives_a_classifier_of_the_names_in_the_arrays(tmp_path: Path) -> None:
    said = run("own_data", tmp_path)
    assert "classes ('even', 'odd')" in said
    assert float(re.findall(r"accuracy ([\d.]+)", said)[0]) > 0.75  # a coin would have half
    assert Coreset.load(tmp_path / "parity.safetensors").data.spec.target.names == ("even", "odd")
    assert {"parity.npz", "parity.csv", "parity.png"} <= {path.name for path in tmp_path.iterdir()}


def test_other_libraries_learn_from_a_coreset(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="needs the extra sklearn")
    shares = [float(share) for share in re.findall(r"([\d.]+)%", run("other_libraries", tmp_path))]
    assert len(shares) == 3
    assert all(share > 85 for share in shares)


def test_a_method_of_one_s_own_beats_a_random_subset(tmp_path: Path) -> None:
    said = run("own_method", tmp_path)
    shares = {name: float(share) for name, share in re.findall(r"([\w-]+) +\w+ per class: ([\d.]+)%", said)}
    assert shares.keys() == {"uniform", "herding", "class-mean-nearest", "full"}
    assert shares["uniform"] < shares["class-mean-nearest"] < shares["full"]
