"""Averages and forgetting of accuracies that are known."""

from pathlib import Path

import pytest

from attar.continual.results import Continual, Episode, StageInfo, curve, first_stage_loss, forgetting, interval
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
    assert "average accuracy 76.6 ± 0.0 %" in repr(found())
    assert interval([0.5]) == "50.0"
