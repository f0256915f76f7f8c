"""Averages and forgetting of accuracies that are known."""

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from attar.cli.tables import stage_table
from attar.continual.results import Continual, Episode, StageInfo, curve, first_stage_loss, forgetting, interval, last
from attar.core.cost import Cost
from attar.core.errors import AttarError

MATRIX = [[0.9], [0.95, 0.8], [0.6, 0.5, 0.7]]


def found() -> Continual:
    stages = [StageInfo("toy", [str(s)], 5, 5, size) for s, size in enumerate((10, 30, 10))]
    runs = [Episode("dm", "condense", seed, MATRIX, MATRIX, [2, 4, 6], [Cost()] * 3, [Cost()] * 3) for seed in (0, 1)]
    return Continual("attar continual toy", {"regime": "memory", "per_class": 2}, stages, runs)


def test_the_curve_counts_examples_not_stages() -> None:
    assert curve(MATRIX, [10, 30, 10]) == pytest.approx([0.9, (9.5 + 24) / 40, (6 + 15 + 7) / 50])
    assert found().average(found().runs[0]) == pytest.approx((0.9 + 0.8375 + 0.56) / 3)


def test_forgetting_is_the_mean_drop_from_the_best() -> None:
    assert forgetting(MATRIX) == pytest.approx(((0.95 - 0.6) + (0.8 - 0.5)) / 2)
    assert first_stage_loss(MATRIX) == pytest.approx(0.3)
    assert forgetting([[0.9]]) == 0


def test_a_result_is_read_back_and_another_file_refused(tmp_path: Path) -> None:
    found().save(tmp_path / "continual.json")
    assert Continual.load(tmp_path / "continual.json") == found()
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(AttarError, match="no result of attar continual"):
        Continual.load(tmp_path / "other.json")


def test_the_table_has_a_line_for_every_run_and_stage() -> None:
    lines = found().csv().splitlines()
    assert lines[0].startswith("method,seed,stage,accuracy,average,forgetting")
    assert len(lines) == 1 + 2 * 3
    assert lines[3].split(",")[2:4] == ["3", "0.56"]
    assert lines[0].endswith(",balanced,worst,majority,temperature,rhat")
    assert lines[3].endswith(",,,,,")  # of a file from before
    assert last([run.balanced for run in found().runs]) == "–"
    assert "average accuracy 76.6 ± 0.0 %" in repr(found())
    assert interval([0.5]) == "50.0"


def test_classes_and_chains_stand_beside_the_accuracy() -> None:
    hot: dict[str, float | None] = {"temperature": 0.001, "rhat": 1.25}
    old = found()
    runs = [replace(run, balanced=[0.9, 0.8, 0.5], worst=[0.9, 0.6, 0.25], chains=hot) for run in old.runs]
    new = replace(old, runs=runs, majority=[1.0, 0.75, 0.6])
    assert new.csv().splitlines()[3].endswith(",0.5,0.25,0.6,0.001,1.25")
    assert last([run.worst for run in new.runs]) == "25.0 ± 0.0"
    assert new.mixing() == ["dm: tempered posterior, T = 0.001, R-hat 1.25"]
    assert old.mixing() == []
    console = Console(width=100)
    with console.capture() as shown:
        console.print(stage_table(replace(new, config={**new.config, "network": "linear"})))
    said = " ".join(shown.get().split())
    for part in ("50.0 ± 0.0 25.0 ± 0.0", "most frequent training class: 60.0 %", "T = 0.001, R-hat 1.25"):
        assert part in said
