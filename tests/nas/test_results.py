"""Correlations, choices and times of trials that are known."""

from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from attar.cli.tables import search_table
from attar.core.cost import Cost
from attar.core.errors import AttarError
from attar.nas.results import Nas, Proxy, Trial, recalls, summarised

NETWORKS = ["a", "b", "c", "d"]
FULL = [0.7, 0.9, 0.8, 0.6]
PROXY = [0.5, 0.6, None, 0.4]


def found() -> Nas:
    trials = [
        Trial("dm", 0, name, 10, Cost(cpu=1), score, score, None if score else "it diverged")
        for name, score in zip(NETWORKS, PROXY, strict=True)
    ]
    trials += [
        Trial("full", 0, name, 10, Cost(cpu=8), score, score - 0.1) for name, score in zip(NETWORKS, FULL, strict=True)
    ]
    return Nas("attar nas toy", {"per_class": 1}, {"name": "toy"}, NETWORKS, [Proxy("dm", 0, 3, Cost(cpu=4))], trials)


def test_a_training_that_failed_ranks_last() -> None:
    assert found().accuracies("dm", 0) == [0.5, 0.6, 0.0, 0.4]
    assert found().correlation("dm", 0) == pytest.approx(0.4)
    assert found().correlation("full", 0) == pytest.approx(1)


def test_the_top_are_those_of_the_search_itself() -> None:
    assert found().ranked("dm", 0) == [1, 0, 3, 2]
    assert found().correlation("dm", 0, top=3) == pytest.approx(1)


def test_the_chosen_network_has_the_score_of_the_full_data() -> None:
    assert found().chosen("dm", 0).test == pytest.approx(0.8)
    assert found().chosen("dm", 0).network == "b"


def test_time_is_relative_to_the_full_data_and_has_the_proxy_set_in_it() -> None:
    assert found().share("dm", 0) == pytest.approx((4 + 4) / 32)
    assert found().share("dm", 0, making=False) == pytest.approx(4 / 32)
    assert summarised(found(), "dm", [0]) == ("0.40", "0.40", "80.0", "25.0", "12.5")


def test_a_result_is_read_back_and_another_file_refused(tmp_path: Path) -> None:
    found().save(tmp_path / "nas.json")
    assert Nas.load(tmp_path / "nas.json") == found()
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(AttarError, match="no result of attar nas"):
        Nas.load(tmp_path / "other.json")
    assert len(found().csv().splitlines()) == 1 + 8
    assert "dm: correlation 0.40" in repr(found())


def test_classes_and_chains_stand_beside_the_accuracy() -> None:
    assert recalls(found(), "dm", [0]) == ("–", "–")  # of a file from before
    assert found().mixing() == []
    hot: dict[str, float | None] = {"temperature": 1.0, "rhat": None}
    trials = [replace(trial, balanced=0.7, worst=0.25, chains=hot) for trial in found().trials]
    new = replace(found(), trials=trials, majority=0.4)
    assert recalls(new, "dm", [0]) == ("70.0", "25.0")
    assert new.csv().splitlines()[1].endswith(",0.7,0.25,0.4,1.0,")
    assert new.mixing() == [f"{row}: posterior, T = 1, R-hat not judged" for row in ("dm", "full")]
    console = Console(width=100)
    with console.capture() as shown:
        console.print(search_table(new))
    said = " ".join(shown.get().split())
    for part in ("80.0 70.0 25.0", "most frequent training class: 40.0 %", "R-hat not judged"):
        assert part in said
