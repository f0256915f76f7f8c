"""Every example runs as its reader would run it, and shows what it says."""

import os
import re
import runpy
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from attar import Coreset
from tests.known import HANG, ROOT, python

EXAMPLES = ROOT / "examples"
OTHERS = ("lightning_loop", "numpyro_weights", "pymc_weights", "posteriors_weights")  #: whose libraries warn on import


def run(name: str, folder: Path) -> str:
    """Run an example in ``folder``, on one thread, with warnings as errors."""
    warnings = [] if name in OTHERS else ["-W", "error"]
    command = [sys.executable, *warnings, str(EXAMPLES / f"{name}.py")]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def run_forked(name: str, folder: Path) -> str:
    """The same in a process that has imported the library before, for an example that would change this one."""
    code = f"import os, runpy, warnings; os.chdir({str(folder)!r}); warnings.simplefilter('error')"
    process = python(f"{code}; runpy.run_path({str(EXAMPLES / f'{name}.py')!r}, run_name='__main__')")
    out, err = process.communicate(timeout=HANG)
    assert process.returncode == 0, err
    return out


Run = Callable[[str], str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run an example in this process, which is faster; returns what it prints."""
    monkeypatch.chdir(tmp_path)

    def run_here(name: str) -> str:
        state = torch.get_rng_state()
        runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
        torch.set_rng_state(state)
        return capsys.readouterr().out

    return run_here


def shares(said: str) -> list[float]:
    return [float(share) for share in re.findall(r"([\d.]+)%", said)]


def test_every_example_is_run_below() -> None:
    below = Path(__file__).read_text(encoding="utf-8")
    names = [path.stem for path in EXAMPLES.glob("*.py")]
    assert [name for name in names if not re.search(rf'(run|run_forked|here)\("{name}"', below)] == []


def test_quickstart_shows_that_ten_learnt_digits_beat_ten_random_ones(tmp_path: Path) -> None:
    said = run("quickstart", tmp_path)
    learnt, random = (
        float(re.findall(rf"^{name} +accuracy ([\d.]+)", said, re.MULTILINE)[0]) for name in ("dc", "uniform")
    )
    assert learnt > random
    assert len(Coreset.load(tmp_path / "digits-dc-1.safetensors")) == 10


def test_own_data_gives_a_classifier_of_the_names_in_the_arrays(here: Run, tmp_path: Path) -> None:
    said = here("own_data")
    assert "classes ('even', 'odd')" in said
    assert float(re.findall(r"accuracy ([\d.]+)", said)[0]) > 0.75  # a coin would have half
    assert Coreset.load(tmp_path / "parity.safetensors").data.spec.target.names == ("even", "odd")
    assert {"parity.npz", "parity.csv", "parity.png"} <= {path.name for path in tmp_path.iterdir()}


def test_a_method_of_one_s_own_beats_a_random_subset(tmp_path: Path) -> None:
    said = run_forked("own_method", tmp_path)
    found = {name: float(share) for name, share in re.findall(r"([\w-]+) +\w+ per class: ([\d.]+)%", said)}
    assert found.keys() == {"uniform", "herding", "class-mean-nearest", "full"}
    assert found["uniform"] < found["class-mean-nearest"] < found["full"]


# Tutorials, one for each kind of data


def test_images_learnt_beat_selected_beat_random(here: Run, tmp_path: Path) -> None:
    said = here("images")
    random, selected, learnt = (float(score) for score in re.findall(r"accuracy ([\d.]+)", said))
    assert random < selected
    assert random + 0.05 < learnt
    assert {"digits-dm.safetensors", "digits-dm.png"} <= {path.name for path in tmp_path.iterdir()}


def test_rows_of_a_table_have_their_numbers_and_valid_values(here: Run) -> None:
    pytest.importorskip("sklearn", reason="needs the extra sklearn")
    pytest.importorskip("pandas", reason="needs pandas")
    said = here("tables")
    assert len(re.findall(r"(?:light|medium|dark)$", said, re.MULTILINE)) == 3  # learnt rows have a colour each
    assert all(float(score) > 0.8 for score in re.findall(r"accuracy ([\d.]+)", said))


def test_nine_sentences_tell_three_topics_apart(here: Run) -> None:
    said = here("texts")
    kept = re.findall(r"^ *(\w+): the (\w+) and", said, re.MULTILINE)
    assert sorted(topic for topic, _ in kept if topic != "learnt") == ["cooking"] * 3 + ["space"] * 3 + ["sports"] * 3
    assert float(re.findall(r"accuracy ([\d.]+)", said)[0]) > 0.8


def test_covering_embeddings_leaves_none_far_away(here: Run, tmp_path: Path) -> None:
    said = here("embeddings")
    covering, random = (float(radius) for radius in re.findall(r"(?:k-center|random) ([\d.]+)", said))
    assert covering < random
    assert "[3 3 3 3 3 3 3 3 3 3]" in said
    assert (tmp_path / "picks.csv").exists()


def test_learnt_observations_have_the_posterior_of_all(here: Run) -> None:
    random, learnt = (float(found) for found in re.findall(r"KL .* ([\d.]+)$", here("bayesian_model"), re.MULTILINE))
    assert learnt < 1 < random


def test_a_network_of_one_s_own_learns_and_loads(here: Run) -> None:
    before, after = (float(score) for score in re.findall(r"(?:accuracy|loading:) ([\d.]+)", here("own_network")))
    assert before == after > 0.7


def test_loops_of_one_s_own_learn_train_and_sample(here: Run) -> None:
    said = here("own_loop")
    before, after = (float(loss) for loss in re.findall(r"(?:dm:|steps) ([\d.]+)", said))
    assert after < before / 2
    assert shares(said)[0] > 70
    assert bracketed(said) == [pytest.approx([1, 2], rel=0.1)]


# Other libraries


def test_scikit_learn_learns_from_a_coreset(here: Run) -> None:
    pytest.importorskip("sklearn", reason="needs the extra sklearn")
    found = shares(here("scikit_learn"))
    assert len(found) == 3
    assert all(share > 85 for share in found)


def test_a_plain_loop_learns_from_a_weighted_coreset(here: Run) -> None:
    (share,) = shares(here("pytorch_loop"))
    assert share > 85


def test_lightning_learns_from_a_coreset(tmp_path: Path) -> None:
    if find_spec("lightning") is None:
        pytest.skip("needs the extra interop")
    (share,) = shares(run("lightning_loop", tmp_path))
    assert share > 75


def bracketed(said: str) -> list[list[float]]:
    """The numbers in brackets on every line that has some."""
    lines = (" ".join(re.findall(r"\[([^\]]+)\]", line)).split() for line in said.splitlines())
    return [[float(number) for number in line] for line in lines if line]


@pytest.mark.parametrize("name", ["numpyro_weights", "pymc_weights"])
def test_weights_as_factors_give_the_posterior_of_all_data(name: str, tmp_path: Path) -> None:
    if find_spec(name.partition("_")[0]) is None:
        pytest.skip("needs the extra interop")
    said = run("numpyro_weights", tmp_path) if name.startswith("numpyro") else run("pymc_weights", tmp_path)
    everything, few = bracketed(said)
    assert few[:2] == pytest.approx(everything[:2], abs=0.3)  # means
    assert few[2:] == pytest.approx(everything[2:], abs=0.05)  # deviations, where they are printed


def test_samplers_of_posteriors_run_on_a_coreset(tmp_path: Path) -> None:
    if find_spec("posteriors") is None:
        pytest.skip("needs the extra interop")
    (share,) = shares(run("posteriors_weights", tmp_path))
    assert share > 60


def test_arviz_judges_chains_by_their_predictions(here: Run) -> None:
    pytest.importorskip("arviz", reason="needs the extra arviz")
    said = here("arviz_draws")
    assert "'chain': 4" in said
    assert 1 <= float(re.findall(r"R-hat of p: ([\d.]+)", said)[0]) < 2
