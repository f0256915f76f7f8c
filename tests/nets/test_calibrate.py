"""Accelerations are tried in real child processes."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import attar
from attar.core.errors import AttarError
from attar.data import Split
from attar.experts import Schedule, find
from attar.nets import calibrate, network
from attar.nets.calibrate import Found, Wanted, decide, tried
from attar.nets.fast.modes import AUTO, COMPILED, HALF, MODES, NONE, current, using
from attar.nets.objective import Objective
from attar.nets.train import Training
from attar.plan import plan
from attar.reduce import run
from attar.study import StudySpec
from attar.study.resume import began_with
from tests.known import Stop, gaussians, generator, stop_at
from tests.odd_networks import deadly, failing, wrong

DATA = gaussians(16)
SHORT = Training(steps=5, batch=16)
NET = network("mlp-d1w16", DATA.spec)
DC: dict[str, Any] = {
    "per_class": 1,
    "network": "mlp-d1w16",
    "descent": {"steps": 4},
    "options": {"matches": 3, "net_steps": 2},
}


@pytest.fixture(scope="module")
def half() -> Found:
    """What a child says of bfloat16; some processors kill it, and then it must not be used here either."""
    found = tried(Wanted(HALF, NET, DATA, "cross-entropy", 1))
    if isinstance(found, str):
        pytest.skip(found)
    return found


def test_half_precision_agrees_but_not_to_the_bit(half: Found) -> None:
    assert 0 < half.gradient <= calibrate.AGREES[HALF]
    assert half.value <= calibrate.AGREES[HALF]
    assert half.faster > 0


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (deadly, r"bfloat16 cannot be used here, because it kills the process \(signal 4\): leave --accelerate out"),
        (wrong, r"its loss differs from float32 by \d.* and its gradient by \d"),
        (failing, r"it fails \(NotImplementedError: no half precision here\)"),
    ],
)
def test_what_dies_or_differs_or_fails_is_refused(build: Callable[[], nn.Module], why: str) -> None:
    with pytest.raises(AttarError, match=why):
        decide(HALF, network(build, DATA.spec), DATA, SHORT)


def test_what_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calibrate, "LIMIT", 0.01)
    assert tried(Wanted(HALF, NET, DATA, "cross-entropy", 1)) == "a gradient takes longer than 0 seconds"


def test_a_network_that_no_other_process_can_build_is_not_accelerated() -> None:
    own = network(lambda: nn.Linear(6, 3), DATA.spec)
    with pytest.raises(AttarError, match="cannot be sent to another process"):
        decide(COMPILED, own, DATA, SHORT)


def test_unknown_modes_are_refused() -> None:
    with pytest.raises(AttarError, match="float16"):
        attar.reduce(DATA, "uniform", per_class=1, accelerate="float16")


@pytest.mark.parametrize(
    ("found", "best"),
    [
        ({HALF: Found(2.0, 0, 0.01, 0.02), COMPILED: Found(1.5, 9, 0, 1e-6)}, HALF),
        ({HALF: Found(9.0, 0, 0.01, 0.2), COMPILED: Found(1.5, 9, 0, 1e-6)}, COMPILED),  # the first disagrees
        ({HALF: Found(9.0, 0, float("nan"), 0.02), COMPILED: "it fails (no compiler)"}, NONE),
        ({HALF: Found(1.05, 0, 0.0, 0.0), COMPILED: Found(0.9, 9, 0, 0)}, NONE),  # neither wins by enough
        ({HALF: Found(2.0, 0, 0, 0.02), COMPILED: Found(2, 9, 0, 0), MODES[2]: Found(3, 9, 0, 0.03)}, MODES[2]),
    ],
)
def test_the_fastest_that_wins_and_agrees_is_used_and_all_are_told(found: dict[str, Found | str], best: str) -> None:
    with pytest.warns(UserWarning, match="Gradients are|No acceleration") as said:
        assert calibrate._best(found) == best
    assert all(f"{mode}: " in str(said[0].message) for mode in found)


def test_only_first_order_gradients_change(half: Found) -> None:
    theta, objective = NET.init(generator()), Objective(NET)
    plain, value = objective.gradient(theta, DATA), objective.value(theta, DATA)
    doubled = objective.gradient(theta, DATA, graph=True)
    with using(HALF):
        quick = objective.gradient(theta, DATA)
        assert torch.equal(objective.value(theta, DATA), value)
        assert torch.equal(objective.gradient(theta, DATA, graph=True), doubled)
    assert 0 < float((quick - plain).norm() / plain.norm()) < 0.05
    assert quick.dtype == torch.float32
    assert torch.equal(objective.gradient(theta, DATA), plain)


def test_a_resumed_run_keeps_its_acceleration_and_its_bits(half: Found, tmp_path: Path) -> None:
    file = tmp_path / "run.checkpoint"
    with using(HALF):
        decided = plan(DATA, "dc", **DC)
    whole = run(decided)
    assert whole.recipe.accelerate == HALF
    assert not torch.equal(whole.data.x, attar.reduce(DATA, "dc", **DC).data.x)
    with pytest.raises(Stop):
        run(decided, [partial(stop_at, 2)], file, every=1)
    resumed = attar.reduce(DATA, "dc", **DC, accelerate=AUTO, checkpoint=file)  # a warning would tell of a calibration
    assert resumed.recipe.accelerate == HALF
    assert torch.equal(resumed.data.x, whole.data.x)


def test_draws_note_their_acceleration(half: Found) -> None:
    with using(HALF):
        found = attar.infer(DATA, draws=1, network=NET, training=SHORT)
    assert found.notes["accelerate"] == HALF
    plain = attar.infer(DATA, draws=1, network=NET, training=SHORT)
    assert "accelerate" not in plain.notes
    assert not torch.equal(found.theta, plain.theta)


def test_experts_are_kept_apart_and_found(half: Found, tmp_path: Path) -> None:
    schedule = Schedule(trajectories=1, training=SHORT)
    with using(HALF):
        made = attar.experts(DATA, NET, schedule, root=tmp_path)
    assert made.manifest.accelerate == HALF
    assert "--accelerate bfloat16" in made.manifest.command
    assert find(DATA, NET, schedule, root=tmp_path).folder == made.folder
    plain = attar.experts(DATA, NET, schedule, root=tmp_path)
    assert plain.folder != made.folder
    assert attar.experts(DATA, NET, schedule, root=tmp_path, accelerate=AUTO).folder == plain.folder
    assert not torch.equal(plain.vector(0, 1), made.vector(0, 1))


def test_a_study_goes_on_as_it_began(half: Found, tmp_path: Path) -> None:
    spec = StudySpec(methods=("uniform",), per_class=(1,), seeds=(0,), network=NET.name, training=SHORT, draws=1)
    spec = replace(spec, baselines=False, converged=False)
    split = Split(DATA, gaussians(4, seed=1), gaussians(4, seed=2))
    study = attar.compare(spec, data=split, folder=tmp_path / "half", accelerate=HALF)
    assert study.config["accelerate"] == began_with(tmp_path / "half") == HALF
    with pytest.raises(AttarError, match="other settings"):
        attar.compare(spec, data=split, folder=tmp_path / "half")
    plain = attar.compare(spec, data=split, folder=tmp_path / "plain")
    assert "accelerate" not in plain.config
    attar.compare(spec, data=split, folder=tmp_path / "plain", accelerate=AUTO)  # without a calibration
    assert began_with(tmp_path / "plain") == NONE
    assert plain.runs[0].test.nll != study.runs[0].test.nll


def test_the_mode_ends_with_its_block() -> None:
    with using(COMPILED):
        assert current() == COMPILED
    with pytest.raises(ValueError, match="inside"), using(COMPILED):
        raise ValueError("inside")
    assert current() == NONE


@pytest.mark.slow
def test_auto_tries_all_and_compiled_code_agrees() -> None:
    found = tried(Wanted(COMPILED, NET, DATA, "cross-entropy", 1))
    assert isinstance(found, str) or found.gradient <= calibrate.AGREES[COMPILED]
    with pytest.warns(UserWarning, match="bfloat16: .*compile: "):
        assert decide(AUTO, NET, DATA, SHORT) in (NONE, *MODES)
