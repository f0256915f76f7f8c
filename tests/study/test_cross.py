"""All coresets of a study under other networks: right cells, nothing trained twice, nothing mixed."""

from dataclasses import replace
from pathlib import Path
from statistics import mean

import pytest

import attar
from attar import Split, Training
from attar.core.errors import AttarError
from attar.coreset import Coreset
from attar.report import write
from attar.study import Study, StudySpec, compare
from attar.study.cell import evaluation_seed
from attar.study.cross import Crossings, _places, cross
from attar.study.grid import Progress
from tests.known import images

NETWORKS = ["linear", "mlp-d1w8"]
SPEC = StudySpec(network="mlp-d1w4", training=Training(steps=10), draws=2, converged=False)


@pytest.fixture(scope="module")
def split() -> Split:
    data = images(12)
    return Split(data[:18], data[18:24], data[24:])


@pytest.fixture
def study(split: Split, tmp_path: Path) -> Study:
    return compare(replace(SPEC, methods="herding", per_class=[1, 2], seeds=[0, 1]), data=split, folder=tmp_path)


def test_a_cell_is_the_network_trained_on_that_coreset(study: Study, split: Split, tmp_path: Path) -> None:
    crossed = cross(study, split, tmp_path, NETWORKS)
    assert crossed.networks == NETWORKS
    assert [row for row, _ in crossed.rows()] == [("uniform", 1), ("uniform", 2), ("herding", 1), ("herding", 2)]
    for (method, size), found in crossed.rows():
        for network in NETWORKS:
            expected = []
            for seed in (0, 1):
                coreset = Coreset.load(tmp_path / "coresets" / f"{method}-{size}-{seed}.safetensors")
                posterior = attar.infer(coreset, draws=2, seed=evaluation_seed(seed), network=network)
                expected.append(attar.evaluate(posterior, split.test).accuracy)
            assert found[network] == pytest.approx(expected)


def test_what_is_there_is_not_trained_again_and_workers_change_nothing(
    study: Study, split: Split, tmp_path: Path
) -> None:
    told: list[Progress] = []
    first = cross(study, split, tmp_path, NETWORKS[:1], engine=attar.Engine(workers=2), watch=told.append)
    assert [(part.done, part.total) for part in told] == [(done, 8) for done in range(1, 9)]
    told.clear()
    both = cross(study, split, tmp_path, NETWORKS, watch=told.append)
    assert len(told) == 8
    assert dict(both.rows())["herding", 2]["linear"] == dict(first.rows())["herding", 2]["linear"]
    assert Crossings.load(tmp_path) == both


def test_means_go_into_a_table_and_the_report(study: Study, split: Split, tmp_path: Path) -> None:
    crossed = cross(study, split, tmp_path, [*NETWORKS, "resnet10"])  # which cannot take images so small
    lines = (tmp_path / "transfer.csv").read_text().splitlines()
    head = "method,per_class,network,seeds,accuracy,standard_error"
    assert lines[0] == f"{head},balanced,worst,majority,temperature,rhat"
    assert len(lines) == 1 + 4 * 2
    accuracy = mean(dict(crossed.rows())["uniform", 1]["linear"])
    assert lines[1].startswith("uniform,1,linear,2,")
    assert float(lines[1].split(",")[4]) == pytest.approx(accuracy)
    cells = crossed.groups()["uniform", 1, "linear"]
    shares = [mean(getattr(cell, name) for cell in cells) for name in ("balanced", "worst", "majority")]
    assert [float(value) for value in lines[1].split(",")[6:9]] == pytest.approx(shares)
    assert shares[1] <= shares[0]
    assert lines[1].endswith(",,")  # an ensemble is no chain
    page = write(study, tmp_path, tmp_path / "report.html").read_text()
    assert "Transfer between networks" in page
    assert ">herding, 2<" in page  # whole, not cut
    assert ">resnet10<" in page
    assert "number of examples per class" in page


def test_a_coreset_that_was_replaced_is_trained_on_again(study: Study, split: Split, tmp_path: Path) -> None:
    first = cross(study, split, tmp_path, NETWORKS)
    path = tmp_path / "coresets" / "herding-1-0.safetensors"
    Coreset.load(tmp_path / "coresets" / "uniform-1-1.safetensors").save(path)
    told: list[Progress] = []
    second = cross(study, split, tmp_path, NETWORKS[::-1], watch=told.append)
    assert [part.line for part in told] == [f"herding, 1 per class, seed 0, {name}" for name in NETWORKS[::-1]]
    assert second.networks == NETWORKS[::-1]
    kept = {cell.place: cell.found for cell in first.cells}
    assert sum(kept.get(cell.place) == cell.found for cell in second.cells) == len(first.cells) - 2


def test_the_sampler_is_the_study_s_and_what_fails_is_told(split: Split, tmp_path: Path) -> None:
    spec = replace(SPEC, methods="uniform", per_class=2, seeds=0, sampler="last-layer-vi", baselines=False)
    made = compare(spec, data=split, folder=tmp_path)
    crossed = cross(made, split, tmp_path, ["mlp-d1w4", "resnet10"])
    assert dict(crossed.rows())["uniform", 2]["mlp-d1w4"] == [made.runs[0].test.accuracy]
    assert crossed.problems[0].startswith("uniform, 2 per class, seed 0, resnet10: resnet needs images")


def test_a_study_that_asks_for_transfers_makes_them(split: Split, tmp_path: Path) -> None:
    told: list[Progress] = []
    spec = replace(SPEC, methods="uniform", per_class=1, seeds=0, transfer="linear", baselines=False)
    compare(spec, data=split, folder=tmp_path, watch=told.append)
    found = Crossings.load(tmp_path)
    assert found is not None
    assert found.networks == ["linear"]
    assert [(part.stage, part.done, part.total) for part in told] == [("runs", 1, 1), ("transfers", 1, 1)]
    assert "on validation" in told[0].line
    assert "%" not in told[1].line  # its figures are of the test set


def test_an_unknown_network_is_refused_and_a_changed_table_is_kept_aside(
    study: Study, split: Split, tmp_path: Path
) -> None:
    assert Crossings.load(tmp_path) is None
    with pytest.raises(AttarError, match="resnet11"):
        cross(study, split, tmp_path, ["resnet11"])
    (tmp_path / "transfer.json").write_text('[{"method": 3}]')
    with pytest.raises(AttarError, match=r"transfer\.json is corrupt or incompatible: move it away"):
        Crossings.load(tmp_path)
    with pytest.warns(UserWarning, match=r"kept as transfer\.json\.unreadable-1, and its networks are trained again"):
        cross(study, split, tmp_path, ["linear"])
    assert (tmp_path / "transfer.json.unreadable-1").read_text() == '[{"method": 3}]'


def test_a_coreset_that_the_test_set_chose_is_not_transferred(study: Study, tmp_path: Path) -> None:
    first = study.runs[0]
    rule = {"best": "coreset", "sampler": "ensemble", "draws": 2}
    chosen = replace(first, coreset="coresets/herding-2-0.safetensors", notes={"evaluation": rule})
    ((_, (path, _)),) = _places(replace(study, runs=[chosen]), tmp_path, ["linear"])
    assert path == tmp_path / f"coresets/{first.method}-{first.per_class}-{first.seed}.safetensors"


@pytest.mark.parametrize("name", ["../other.safetensors", "/etc/hostname", "coresets/none.safetensors"])
def test_a_coreset_outside_the_folder_is_refused(name: str, study: Study, split: Split, tmp_path: Path) -> None:
    elsewhere = replace(study.runs[0], coreset=name)
    with pytest.raises(AttarError, match=r"is not in .*: run the study again in this folder"):
        cross(replace(study, runs=[elsewhere]), split, tmp_path, NETWORKS)
