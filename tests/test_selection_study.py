"""The study of selection on digits: what it writes is what its cells hold, and a finished cell is not run again."""

import json
from dataclasses import replace
from pathlib import Path
from statistics import mean
from typing import Any
from xml.etree import ElementTree

import pytest
import torch

import attar
from attar.assess.statistics import Paired, half_width, with_half
from attar.core import registry
from attar.nets.train import Training
from attar.select.run import select
from attar.select.sources import from_embeddings
from benchmarks import _selecting, selection_fit
from benchmarks._selecting import Bench, Setting, gap
from benchmarks.selection_study import NETWORKS, architectures, duels, heat_map, robustness, sweep, table
from tests.known import python

TINY = Setting("digits", 300, "mlp-d1w16", Training(steps=10), Training(steps=10))


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return replace(TINY, folder=tmp_path / "work")


def test_the_table_has_means_errors_and_costs_and_is_not_measured_twice(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    how = {"methods": ["uniform", "craig", "lcmat-s"], "fractions": (0.05, 0.1), "results": tmp_path}
    found = json.loads(table(setting, seeds=(0, 1), **how).read_text())  # type: ignore[arg-type]
    assert list(found["table"]) == ["0.05", "0.1"]
    assert set(found["table"]["0.1"]) == {"uniform", "craig", "lcmat-s", "lcmat-s, weighted"}
    for fraction, size in (("0.05", 15), ("0.1", 30)):
        for label, row in found["table"][fraction].items():
            own = [r for r in found["runs"] if r["row"] == label and r["fraction"] == float(fraction)]
            assert len(own) == 2
            assert row["size"] == size
            assert row["accuracy"]["mean"] == pytest.approx(mean(run["accuracy"] for run in own))
            assert row["selection_cpu"] >= 0
    assert found["full"]["size"] == 300
    assert 0.5 < found["table"]["0.1"]["uniform"]["hardness"]["mean"] < 2
    _is_shown(tmp_path, found)

    monkeypatch.setattr(_selecting, "timed", _never)
    again = json.loads(table(setting, seeds=(1,), **how).read_text())  # type: ignore[arg-type]
    assert again["runs"] == [run for run in found["runs"] if run["seed"] == 1]
    with pytest.raises(AssertionError, match="measured again"):
        table(replace(setting, draws=2), seeds=(1,), **how)  # type: ignore[arg-type]


SHOW = """
import sys
from pathlib import Path
sys.path.insert(0, "docs")
import selection_tables, tables
tables.RESULTS = Path(sys.argv[1])
print(selection_tables.accuracy())
print(selection_tables.above())
"""


FURTHER = """
import sys
from pathlib import Path
sys.path.insert(0, "docs")
import selection_tables, tables
tables.RESULTS = Path(sys.argv[1])
print(selection_tables.further())
"""


def test_the_documentation_shows_what_else_was_measured(setting: Setting, tmp_path: Path) -> None:
    few: dict[str, Any] = {"seeds": (0, 1), "results": tmp_path}
    table(setting, ("uniform", "craig"), (0.2, 0.3), name="wide", **few)
    architectures(setting, ("uniform", "craig"), ("linear",), fraction=0.1, **few)
    sweep(setting, (0.1,), fraction=0.1, **few)
    robustness(setting, ("uniform", "craig"), (1,), (0.0,), fraction=0.1, **few)
    page, err = python(FURTHER, tmp_path).communicate(timeout=600)
    for said in (
        "| method | 20 % | 30 % |",
        "| method | `linear` |",
        "| `lcmat-s` | 0.1 | yes |",
        "over 2 training settings",
    ):
        assert said in page, page + err
    assert "epochs" in page


def _is_shown(results: Path, found: dict[str, Any]) -> None:
    """The documentation takes its table from the file."""
    page, err = python(SHOW, results).communicate(timeout=600)
    assert "| method | 5 % | 10 % |" in page, err
    for label, row in found["table"]["0.1"].items():
        mean, error = (100 * row["accuracy"][name] for name in ("mean", "error"))
        shown = with_half(mean, half_width(error, 2), ".1f")
        assert any(f"`{label}`" in line and shown in line for line in page.splitlines())


@pytest.mark.parametrize("method", sorted(registry.methods("select")))
def test_picks_of_a_smaller_fraction_are_what_a_selection_of_it_gives(method: str, setting: Setting) -> None:
    bench = Bench(setting, [0.05, 0.1])
    picked = bench.picks(method, {}, 1)
    again = select(bench.view(1), method, fraction=0.05, balanced=True, seed=1)
    assert picked["0.05"]["indices"] == again.indices.tolist()
    assert (picked["0.05"]["weights"] is None) == (again.weights is None)


def _never(_: object) -> None:
    raise AssertionError("measured again")


def test_all_methods_of_a_seed_look_through_one_training(setting: Setting) -> None:
    bench = Bench(setting, [0.1])
    for method, options in (("craig", {"fit": 1.0}), ("herding", {}), ("gradmatch-val", {"fit": 1.0})):
        bench.picks(method, options, 0)
    assert len(list((setting.folder / "views").glob("view-*"))) == 1
    assert torch.equal(bench.view(0).theta, Bench(setting, [0.2]).view(0).theta)


def test_robustness_draws_who_wins_under_every_condition(setting: Setting, tmp_path: Path) -> None:
    methods, few = ("uniform", "craig"), {"epochs": (1,), "decays": (0.0, 0.1), "seeds": (0, 1), "fraction": 0.1}
    numbers, drawing = robustness(setting, methods, results=tmp_path, **few)  # type: ignore[arg-type]
    found = json.loads(numbers.read_text())
    assert len(found["duels_won"]) == 4
    assert all(sum(won.values()) == pytest.approx(1) for won in found["duels_won"].values())  # one duel, two sides
    svg = ElementTree.parse(drawing).getroot()
    assert len([cell for cell in svg.iter() if cell.get("class") == "heat"]) == 8


def test_the_networks_that_learn_from_the_picks_exist() -> None:
    for name in (Setting().network, *NETWORKS):
        assert attar.network(name, (1, 28, 28), 10).size > 0


def test_duels_are_counted_seed_by_seed_and_a_tie_is_half() -> None:
    found = {"a": [0.9, 0.5], "b": [0.8, 0.5], "c": [0.7, 0.6]}
    assert duels("a", found) == (1 + 0.5 + 1 + 0) / 4
    assert ">75<" in heat_map({"one": {"a": 0.75}})


def test_the_sweep_has_a_row_for_every_radius_with_and_without_weights(setting: Setting, tmp_path: Path) -> None:
    found = json.loads(sweep(setting, (0.0, 0.1), (0,), 0.1, tmp_path).read_text())
    kinds = [(row["method"], row.get("rho"), row.get("weighted")) for row in found["table"]]
    assert kinds == [("uniform", None, None), *(("lcmat-s", r, w) for r in (0.0, 0.1) for w in (False, True))]
    assert all(row["gap"]["mean"] >= 0 for row in found["table"])


def test_all_examples_have_no_gap_and_one_has() -> None:
    gen = torch.Generator().manual_seed(0)
    x, y = torch.randn(20, 3, generator=gen), torch.arange(20) % 2
    view = from_embeddings(x, y, x[:, :2])
    assert gap(view, torch.arange(20), torch.ones(20), 0.5) == pytest.approx(0, abs=1e-5)
    assert gap(view, torch.tensor([3]), torch.ones(1), 0.5) > 0.1


FIT = """
import sys
from pathlib import Path
sys.path.insert(0, "docs")
import selection_tables, tables
tables.RESULTS = Path(sys.argv[1])
print(selection_tables.fit(), selection_tables.fit_choice())
"""


def test_what_stops_by_fit_is_compared_with_a_random_subset_seed_by_seed(setting: Setting, tmp_path: Path) -> None:
    rows = {"uniform": ("uniform", {}), "craig": ("craig", {"fit": 0.05})}
    few: dict[str, Any] = {"data": ["digits"], "fractions": (0.05, 0.1), "results": tmp_path}
    found = json.loads(selection_fit.table("fit", rows, setting, seeds=tuple(range(5)), **few).read_text())
    bench = Bench(setting, (0.05, 0.1))
    own = [bench.cell("craig", {"fit": 0.05}, 0.1, seed)["accuracy"] for seed in range(5)]
    assert found["accuracies"]["digits"]["craig"]["0.1"] == own
    page, err = python(FIT, tmp_path).communicate(timeout=600)
    random = found["accuracies"]["digits"]["uniform"]["0.1"]
    gap = Paired.of(*({s: 100 * values[s] for s in range(5)} for values in (own, random)))
    assert f"| {gap} |" in page, page + err


def test_the_fit_is_chosen_without_the_test_set(
    setting: Setting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    split = attar.load("digits")
    asked: list[int] = []
    evaluate = attar.evaluate
    monkeypatch.setattr(attar, "evaluate", lambda posterior, data: asked.append(len(data)) or evaluate(posterior, data))
    quiet = replace(setting, test=False, scoring=Training(steps=30))
    path = selection_fit.choice(quiet, ["digits"], (0.05, 1.0), (0.05,), (0,), tmp_path)
    found = json.loads(path.read_text())["gains"]["digits"]
    assert set(asked) == {len(split.val)} != {len(split.test)}
    assert found["uniform"] == 0
    assert set(found) == {"uniform", *(f"{m}, fit={f}" for m in selection_fit.CHOICE_METHODS for f in ("0.05", "1"))}
    page, err = python(FIT, tmp_path).communicate(timeout=600)
    assert f"| `craig, fit=1` | {100 * found['craig, fit=1']:+.1f} |" in page, page + err


def test_what_published_code_does_otherwise_is_measured_without_the_test_set(setting: Setting, tmp_path: Path) -> None:
    quiet = replace(setting, test=False)
    settings = quiet, replace(quiet, network="convnet-d1w4-batch")
    paths = selection_fit.published(["digits"], (0.05,), (0,), settings, tmp_path)
    odd, mode = (json.loads(path.read_text()) for path in paths)
    assert set(odd["accuracies"]["digits"]) == set(selection_fit.ODD_ROWS)
    assert set(mode["accuracies"]["digits"]) == set(selection_fit.MODE_ROWS)
    assert not odd["setting"]["test"]
    assert mode["setting"]["learner"] == setting.network != mode["setting"]["network"]
