"""Runs through the stages: they resume, they grow, and bad input ends them before anything runs."""

from pathlib import Path
from typing import Any

import pytest
import torch

import attar
from attar.continual import Continual, cell
from attar.continual.cell import Work
from attar.core.errors import AttarError
from attar.core.files import read_json, read_tensors
from attar.coreset import Coreset
from attar.data import Split
from attar.select.budget import SkewWarning
from attar.study.grid import Progress, Seeded
from tests.continual.sets import spec, split
from tests.known import Stop

QUICK = {"net_steps": 2, "adjust_steps": 2, "adjust_lr": 1.0}


def scores(found: Continual) -> list[Any]:
    return [(run.method, run.seed, run.validation, run.test, run.memory) for run in found.runs]


def test_python_and_the_library_name_it(tmp_path: Path) -> None:
    found = attar.continual(spec(), data=split(), folder=tmp_path)
    assert [run.method for run in found.runs] == ["uniform", "herding", "full"]
    assert [len(row) for row in found.runs[0].test] == [1, 2]
    assert [run.memory for run in found.runs] == [[4, 8], [4, 8], [12, 24]]
    assert found.curve(found.runs[-1])[-1] > 0.9  # all data of classes that lie far apart
    assert Continual.load(tmp_path / "continual.json") == found
    assert (tmp_path / "continual.csv").read_text() == found.csv()
    assert "'per_class': 2" in found.command  # the call with its settings, so that it can be repeated
    page = attar.report(tmp_path, tmp_path / "p.html").read_text()
    assert "gaussians: 2 stages, 2 examples per class in memory" in page
    assert found.majority == [0.5, 0.25]  # four classes of as many examples, two in each stage
    for run in found.runs:
        assert run.balanced == pytest.approx(found.curve(run))  # which is why these are the same here
        assert all(low <= mean for low, mean in zip(run.worst, run.balanced, strict=True))
        assert run.chains == {}


@pytest.mark.filterwarnings("ignore::attar.infer.diagnose.MixingWarning")
def test_temperature_and_mixing_of_chains_are_kept(tmp_path: Path) -> None:
    short = {"warmup": 4, "thin": 4, "step": 1e-3, "temperature": 0.01}
    wanted = spec(methods=("uniform",), baselines=False, draws=2, sampler="sghmc", sampler_options=short)
    (run,) = attar.continual(wanted, data=split(), folder=tmp_path).runs
    assert run.chains["temperature"] == 0.01
    assert run.chains["rhat"] is not None
    assert attar.continual(wanted, data=split(), folder=tmp_path).mixing()[0].startswith("uniform: tempered posterior")


def tensors(folder: Path) -> dict[str, dict[str, torch.Tensor]]:
    """What every stage left: coresets, networks and adjusted memories."""
    return {str(path.relative_to(folder)): read_tensors(path)[0] for path in folder.rglob("*.safetensors")}


@pytest.mark.parametrize(
    ("regime", "method", "place"),
    [
        ("memory", "dm", "_filled"),
        ("finetune", "dm", "_filled"),
        ("finetune", "mnemonics", "_filled"),
        ("finetune", "mnemonics", "_adjusted"),
        ("finetune", "mnemonics", "_trained"),
    ],
)
def test_a_run_killed_in_a_stage_goes_on_and_ends_in_the_same_bits(
    regime: str, method: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"options": {"mnemonics": QUICK} if method == "mnemonics" else {}, "descent": {method: {"steps": 2}}}
    wanted = spec(methods=(method,), baselines=False, stages=3, regime=regime, **settings)
    data = split(classes=6)
    whole = attar.continual(wanted, data=data, folder=tmp_path / "whole")
    real = vars(cell)[place]

    def stops(work: Work, job: Seeded, stage: int, *rest: Any) -> Any:
        if stage == 2:
            raise Stop
        return real(work, job, stage, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(cell, place, stops)
        with pytest.raises(Stop):
            attar.continual(wanted, data=data, folder=tmp_path / "killed")
    kept = {path: path.stat().st_mtime_ns for path in (tmp_path / "killed").rglob("*.safetensors")}
    adjusted = {"memory"} if method == "mnemonics" else set()
    assert {path.parent.name for path in kept} == {"coresets", "networks"} | adjusted
    again = attar.continual(wanted, data=data, folder=tmp_path / "killed")
    assert scores(again) == scores(whole)
    assert all(path.stat().st_mtime_ns == then for path, then in kept.items())
    ours, theirs = tensors(tmp_path / "killed"), tensors(tmp_path / "whole")
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(part, theirs[path][name]) for path, all_ in ours.items() for name, part in all_.items())


@pytest.mark.parametrize("kind", ["coresets", "networks", "memory"])
@pytest.mark.parametrize("done", [True, False])
def test_what_a_stage_left_is_kept_aside_and_made_again_if_it_is_damaged(kind: str, done: bool, tmp_path: Path) -> None:
    settings = {"options": {"mnemonics": QUICK}, "descent": {"mnemonics": {"steps": 2}}}
    wanted = spec(methods=("mnemonics",), baselines=False, regime="finetune", **settings)
    whole = attar.continual(wanted, data=split(), folder=tmp_path)
    path = tmp_path / kind / "mnemonics-0-2.safetensors"
    good, theirs = path.read_bytes(), tensors(tmp_path)
    path.write_bytes(good[:-1])
    if not done:
        (tmp_path / "runs" / "mnemonics-0.json").unlink()
    if done and kind != "coresets":  # only coresets are results; the rest is for going on
        assert scores(attar.continual(wanted, data=split(), folder=tmp_path)) == scores(whole)
        return
    with pytest.warns(UserWarning, match=r"mnemonics-0-2\.safetensors\.unreadable-1, and it is made again"):
        again = attar.continual(wanted, data=split(), folder=tmp_path)
    assert scores(again) == scores(whole)
    ours = tensors(tmp_path)
    assert all(torch.equal(part, theirs[path][name]) for path, all_ in ours.items() for name, part in all_.items())
    assert path.with_name("mnemonics-0-2.safetensors.unreadable-1").read_bytes() == good[:-1]


def test_fine_tuning_gives_mnemonics_its_networks_and_the_memory_is_adjusted(tmp_path: Path) -> None:
    settings = {"options": {"mnemonics": QUICK}, "descent": {"mnemonics": {"steps": 2}}}
    wanted = spec(methods=("mnemonics",), baselines=False, regime="finetune", draws=2, **settings)
    found = attar.continual(wanted, data=split(), folder=tmp_path)
    assert found.runs[0].memory == [4, 8]
    first, second = (Coreset.load(tmp_path / "coresets" / f"mnemonics-0-{stage}.safetensors") for stage in (1, 2))
    assert first.recipe.phase != second.recipe.phase is not None
    adjusted = Coreset.load(tmp_path / "memory" / "mnemonics-0-2.safetensors")
    assert adjusted.data.spec.target == first.data.spec.target
    assert torch.equal(adjusted.data.y, first.data.y)
    assert not torch.equal(adjusted.data.x, first.data.x)
    assert not (tmp_path / "memory" / "mnemonics-0-1.safetensors").exists()  # nothing was there to adjust


def test_a_memory_alone_is_filled_by_mnemonics_without_a_network(tmp_path: Path) -> None:
    wanted = spec(methods=("mnemonics",), baselines=False, descent={"mnemonics": {"steps": 2}})
    attar.continual(wanted, data=split(), folder=tmp_path)
    assert Coreset.load(tmp_path / "coresets" / "mnemonics-0-2.safetensors").recipe.phase is None
    assert not (tmp_path / "memory").exists()


@pytest.mark.parametrize("kind", ["logits", "features"])
def test_a_cosine_classifier_learns_in_stages(kind: str, tmp_path: Path) -> None:
    wanted = spec(
        methods=("mnemonics",),
        regime="finetune",
        network="mlp-d1w8-cosine",
        distillation_kind=kind,
        options={"mnemonics": QUICK},
        descent={"mnemonics": {"steps": 2}},
    )
    found = attar.continual(wanted, data=split(), folder=tmp_path)
    assert [run.method for run in found.runs] == ["uniform", "herding", "mnemonics", "full"]
    assert min(found.curve(run)[-1] for run in found.runs) > 0.7


def test_finished_runs_are_not_repeated_and_others_join(tmp_path: Path) -> None:
    seen: list[Progress] = []
    first = attar.continual(spec(), data=split(), folder=tmp_path)
    grown = attar.continual(spec(seeds=(0, 1)), data=split(), folder=tmp_path, watch=seen.append)
    assert [part.kept for part in seen] == [True] * 3 + [False] * 3
    assert [run for run in grown.runs if run.seed == 0] == first.runs
    assert grown.config["seeds"] == [0, 1]
    with pytest.raises(AttarError, match="other settings"):
        attar.continual(spec(regime="finetune"), data=split(), folder=tmp_path)


def test_the_jobs_that_are_written_down_have_the_names_of_their_logs(tmp_path: Path) -> None:
    wanted = spec(methods=("dm",), baselines=False, descent={"dm": {"steps": 2}})
    attar.continual(wanted, data=split(), folder=tmp_path)
    logs = {path.stem: 2 for path in (tmp_path / "logs").iterdir()}
    assert read_json(tmp_path / "jobs.json") == logs == {"dm-0-1": 2, "dm-0-2": 2}


def test_workers_find_the_same(tmp_path: Path) -> None:
    alone = attar.continual(spec(), data=split(), folder=tmp_path / "one")
    together = attar.continual(spec(), data=split(), folder=tmp_path / "two", workers=2)
    assert scores(alone) == scores(together)


def test_a_run_that_diverges_does_not_keep_the_others_from_running(tmp_path: Path) -> None:
    wanted = spec(methods=("dm", "uniform"), baselines=False, descent={"dm": {"steps": 5, "lr": 1e30}})
    with pytest.raises(AttarError, match=r"dm-0 diverged; all other runs are finished and kept\."):
        attar.continual(wanted, data=split(), folder=tmp_path)
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["uniform-0.json"]


def test_data_sets_are_stages_and_each_adds_to_every_class(tmp_path: Path) -> None:
    found = attar.continual(spec(stages=None, regime="finetune"), data=[split(), split(seed=1)], folder=tmp_path)
    assert [stage.classes for stage in found.stages] == [[f"class {c}" for c in range(4)]] * 2
    assert found.runs[0].memory == [8, 16]
    assert min(found.curve(run)[-1] for run in found.runs) > 0.9


def test_methods_that_need_experts_get_those_of_every_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTAR_EXPERTS", str(tmp_path / "nowhere"))
    wanted = spec(methods=("mtt",), baselines=False, descent={"mtt": {"steps": 1}}, options={"mtt": {"net_steps": 2}})
    found = attar.continual(wanted, data=split(), folder=tmp_path / "c")
    assert len(found.runs[0].test) == 2
    assert {path.name for path in (tmp_path / "c" / "experts").iterdir()} == {"stage-1", "stage-2"}
    assert not (tmp_path / "nowhere").exists()


def test_a_memory_may_be_a_share_and_skewed_classes_are_told(tmp_path: Path) -> None:
    data = split()
    skewed = Split(data.train[[*range(24), *[0] * 8]], data.val, data.test)
    with pytest.warns(SkewWarning):
        found = attar.continual(
            spec(per_class=10, fraction=0.25, methods="uniform", baselines=False), data=skewed, folder=tmp_path
        )
    assert found.runs[0].memory == [4, 8]


def test_bad_input_ends_the_call_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(AttarError, match=r"^Class 'class \d' has 6 examples, but 7 per class were asked for"):
        attar.continual(spec(per_class=7), data=split(), folder=tmp_path / "c")
    with pytest.raises(AttarError, match="choose the number of stages from 1, 2"):
        attar.continual(spec(stages=3), data=split(), folder=tmp_path / "c")
    assert not (tmp_path / "c").exists()
