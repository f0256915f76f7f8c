"""Parts, shares and forecasts are decided before anything is selected."""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attar.core.cost import measure
from attar.core.errors import AttarError
from attar.data import InParts
from attar.select import large
from attar.select.contract import Selector
from attar.select.craig import CRAIG
from attar.select.doubling import Doubling
from attar.select.entropy import Entropy
from attar.select.kcenter import KCenter
from attar.select.large.plan import LIBRARIES
from attar.select.uniform import Uniform
from tests.known import Clock
from tests.tables import parquet


def columns(tmp_path: Path) -> InParts:
    return InParts(parquet(tmp_path), "emb", "y", "key")


def test_parts_shrink_to_the_memory_and_the_forecast_stays_below_it(tmp_path: Path) -> None:
    np.save(tmp_path / "wide.npy", np.zeros((600, 20_000), np.float32))
    wide = InParts(tmp_path / "wide.npy")
    plans = [large.plan(wide, KCenter(), size=2, memory=memory) for memory in ("2GB", "800MB", "600MB")]
    assert [plan.part for plan in plans] == sorted((plan.part for plan in plans), reverse=True)
    assert plans[-1].part < plans[0].part
    assert all(plan.forecast <= plan.memory for plan in plans)
    with pytest.raises(
        AttarError,
        match=r"A part of 64 rows needs about .* MB of memory, and 401.0 MB is .*: allow more with --memory\.$",
    ):
        large.plan(wide, KCenter(), size=2, memory="401MB")
    with pytest.raises(
        AttarError, match=r"A part of 40,000 rows .* 2.0 GB is allowed: allow more .*, or ask for smaller"
    ):
        large.plan(wide, KCenter(), size=2, part=40_000)


def test_memory_is_forecast_within_a_factor_of_two(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((20_000, 64)).astype(np.float32))
    plan = large.plan(InParts(tmp_path / "x.npy"), KCenter(), size=500)
    with measure() as cost:
        large.run(plan)
    assert cost.memory < 2 * plan.forecast
    assert plan.forecast - LIBRARIES < 2**28


def test_all_picks_of_each_part_if_they_are_few_and_shares_if_they_are_many(tmp_path: Path) -> None:
    table = columns(tmp_path)
    few, many = (large.plan(table, KCenter(), size=size, part=100) for size in (25, 26))
    assert (few.how, many.how) == ("again", "shares")
    assert "25 picks of each, then 25 of these" in few.describe()
    assert "26 picks from 900 rows in 9 parts of at most 100: each gives its share, about 3 picks" in many.describe()
    assert "picks. Shares have no guarantee; with --part 104 or more, which needs about 4" in many.describe()
    assert "guarantee" not in few.describe()
    assert large.plan(table, Uniform(), size=26, part=100).how == large.plan(table, Entropy(), size=9).how == "best"
    assert "900 rows in one part" in large.plan(table, KCenter(), size=25).describe()


@pytest.mark.parametrize("size", [26, 100, 333, 899, 900])
def test_shares_sum_to_the_size_and_no_part_gives_more_than_it_has(size: int, tmp_path: Path) -> None:
    plan = large.plan(columns(tmp_path), CRAIG(), size=size, balanced=False, part=77)
    task = plan.task(None)
    quotas = torch.tensor([task.quotas(part, counts) for part, counts in enumerate(plan.known.table)])
    assert plan.how == "shares"
    assert quotas.sum(0).tolist() == list(plan.sizes)
    assert bool((quotas >= 0).all())
    assert bool((quotas <= plan.known.table).all())
    fair = plan.known.table * torch.tensor(plan.sizes) / plan.known.table.sum(0)
    assert bool(((quotas - fair).abs() < 1).all())


def test_an_estimate_of_time_trains_nothing_and_counts_every_level(tmp_path: Path) -> None:
    plan = large.plan(columns(tmp_path), CRAIG(), size=20, part=100)
    assert plan.seconds() > 0
    share = 20 * plan.parts / 900
    assert plan._levels() == pytest.approx(1 / (1 - share))
    assert large.plan(columns(tmp_path), Uniform(), size=20).seconds() > 0


@pytest.mark.parametrize(("method", "workers"), [(KCenter(), 1), (KCenter(), 3), (KCenter(), 30), (Doubling(), 3)])
def test_time_is_that_of_one_part_for_every_row_and_what_is_shared_is_divided(
    method: Selector, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, noise = Clock(monkeypatch), iter([7.0, 0.0, 3.0])
    module = import_module("attar.select.large.plan")
    read, first = module.parts_of, module.survey

    def surveyed(*arguments: Any) -> Any:
        clock.tick(4.0)
        return first(*arguments)

    monkeypatch.setattr(module, "survey", surveyed)
    plan = large.plan(columns(tmp_path), method, size=20, part=100)

    def slowly(*arguments: Any, **how: Any) -> Iterator[Any]:
        clock.tick(0.2)
        yield from read(*arguments, **how)

    monkeypatch.setattr(module, "parts_of", slowly)
    select = module.picked

    def picked(*arguments: Any) -> Any:
        clock.tick(0.5 + next(noise))
        return select(*arguments)

    monkeypatch.setattr(module, "picked", picked)
    monkeypatch.setattr(module.Mark, "save", lambda *arguments: clock.tick(0.1))
    rows = plan.jobs[0].sizes[0]
    shared = 1 if plan.how == "stream" else min(workers, 9)  # there are nine jobs
    expected = 4 + plan.rows / rows * (0.7 / shared + 0.5 * (plan._levels() - 1)) + 0.1 * len(plan.turns)
    assert plan.seconds(workers) == pytest.approx(expected)


def test_classes_are_counted_in_every_part_and_read_once(tmp_path: Path) -> None:
    table = columns(tmp_path)
    plan = large.plan(table, KCenter(), size=20, part=100, folder=tmp_path / "parts")
    assert plan.known.names == ("class 0", "class 1", "class 2", "class 3")
    assert plan.known.table.sum(1).tolist() == [100] * 9
    kept = tmp_path / "parts" / "survey.json"
    kept.write_text(kept.read_text().replace("class 0", "class zero"))
    assert large.plan(table, KCenter(), size=20, part=100, folder=tmp_path / "parts").known.names[0] == "class zero"
    parquet(tmp_path)  # files with a new time are read again
    assert large.plan(table, KCenter(), size=20, part=100, folder=tmp_path / "parts").known.names[0] == "class 0"
