import csv
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from attar.core.errors import AttarError
from attar.select.contract import Selection
from tests.known import generator

PICKED = Selection(torch.tensor([4, 0, 2]), torch.tensor([0.5, 0.25, 0.125]), torch.tensor([1.0, 3.0, 0.0]))
PLAIN = PICKED._replace(weights=None)


def test_a_subset_holds_the_picks_in_order() -> None:
    everything = TensorDataset(torch.arange(5), torch.arange(5) * 10)
    assert [tuple(map(int, item)) for item in PICKED.subset(everything)] == [(4, 40), (0, 0), (2, 20)]


def test_a_sampler_draws_in_proportion_to_the_weights() -> None:
    everything = TensorDataset(torch.arange(5))
    loader = DataLoader(PICKED.subset(everything), batch_size=100, sampler=PICKED.sampler(generator(), draws=4000))
    seen = torch.cat([batch for (batch,) in loader])
    counts = torch.bincount(seen, minlength=5).tolist()
    assert counts[1] == counts[2] == counts[3] == 0  # the third has no weight
    assert counts[0] == pytest.approx(3000, abs=100)  # 3.6 standard deviations
    assert len(PLAIN.sampler(generator())) == 3
    assert set(PLAIN.sampler(generator(), draws=50)) == {0, 1, 2}


def test_weights_that_are_all_zero_cannot_be_drawn_from() -> None:
    with pytest.raises(AttarError, match="All weights are zero"):
        PICKED._replace(weights=torch.zeros(3)).sampler(generator())


def test_the_table_names_index_score_class_and_weight(tmp_path: Path) -> None:
    PICKED.csv(tmp_path / "picks.csv", torch.tensor([7, 8, 9, 10, 11]))
    with (tmp_path / "picks.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["index"] for row in rows] == ["4", "0", "2"]
    assert [float(row["score"]) for row in rows] == [0.5, 0.25, 0.125]
    assert [row["class"] for row in rows] == ["11", "7", "9"]
    assert [float(row["weight"]) for row in rows] == [1, 3, 0]
    PLAIN.csv(tmp_path / "plain.csv")
    assert (tmp_path / "plain.csv").read_text().splitlines()[1] == "4,0.5,,1.0"


def test_picks_are_written_with_the_user_s_rows_beside_them(tmp_path: Path) -> None:
    PICKED._replace(rows=[14, 10, 12]).csv(tmp_path / "numbers.csv")
    PICKED._replace(rows=["e,f", "a", "c"]).csv(tmp_path / "keys.csv")
    for name, rows in (("numbers", ["14", "10", "12"]), ("keys", ["e,f", "a", "c"])):
        with (tmp_path / f"{name}.csv").open() as file:
            found = list(csv.DictReader(file))
        assert list(found[0])[:2] == ["index", "row"]
        assert [row["row"] for row in found] == rows
