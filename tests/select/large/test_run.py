"""Selection from tables in parts: what it guarantees, on every engine, after kills and with bad input."""

import signal
import sys
from importlib import import_module
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

import attar
from attar.core.errors import AttarError
from attar.data import InParts
from attar.select import Selection, large
from attar.select.kcenter import KCenter
from attar.select.large import work as working
from attar.select.large.jobs import Turn
from attar.select.large.rows import Mark, Rows
from attar.select.large.work import Done, Task, Todo
from attar.select.large.work import work as real
from tests.known import HANG, python, wait_until
from tests.tables import KEYS, X, Y, corrupt, parquet, table

running = import_module("attar.select.large.run")  # the package has a function of this name
streaming = import_module("attar.select.large.stream")
COLUMNS = {"features": "emb", "label": "y", "id": "key"}
QUICK = attar.Training(steps=20)


def pick(source: str, method: str, **asked: Any) -> Selection:
    return attar.select(source, method, **{**COLUMNS, "part": 128, "training": QUICK, **asked})


def same(a: Selection, b: Selection) -> bool:
    weights = a.weights is b.weights or torch.equal(a.weights, b.weights)  # type: ignore[arg-type]
    return torch.equal(a.indices, b.indices) and torch.equal(a.scores, b.scores) and weights and a.rows == b.rows


@pytest.mark.parametrize("method", ["uniform", "k-center", "herding", "craig", "lcmat-s", "entropy"])
@pytest.mark.parametrize("size", [8, 200])
def test_picks_are_different_rows_with_their_keys_and_classes(method: str, size: int, tmp_path: Path) -> None:
    found = pick(parquet(tmp_path), method, size=size)
    assert len(set(found.indices.tolist())) == len(found.indices) == size
    assert found.rows == [KEYS[i] for i in found.indices.tolist()]
    assert found.classes == [f"class {Y[i]}" for i in found.indices.tolist()]
    if found.weights is not None:
        assert float(found.weights.sum()) == pytest.approx(900)
    assert (found.weights is not None) == (method == "craig")
    assert same(found, pick(parquet(tmp_path), method, size=size))
    assert not same(found, pick(parquet(tmp_path), method, size=size, seed=1)) or method in ("k-center", "herding")


@pytest.mark.parametrize("method", ["k-center", "craig", "entropy", "uniform"])
def test_classes_get_their_share_whether_picked_again_or_by_share(method: str, tmp_path: Path) -> None:
    for per_class in (3, 40):
        found = pick(parquet(tmp_path), method, per_class=per_class)
        assert found.classes is not None
        assert [found.classes.count(f"class {c}") for c in range(4)] == [per_class] * 4
    found = pick(parquet(tmp_path), method, size=90, balanced=False)
    assert np.bincount(Y[found.indices], minlength=4) == pytest.approx(np.bincount(Y) / 10, abs=1)


def test_skewed_classes_share_by_a_budget_or_are_warned_of(tmp_path: Path) -> None:
    y = np.array([0] * 60 + [1] * 20 + [2] * 10)
    np.save(tmp_path / "x.npy", X[:90])
    np.save(tmp_path / "y.npy", y)
    source = InParts(tmp_path / "x.npy", label=str(tmp_path / "y.npy"))
    for budget, counts in (("proportional", [8, 3, 1]), ("minimum=3", [6, 3, 3])):
        for asked in ({"per_class": 4}, {"size": 12}):
            found = attar.select(source, "uniform", budget=budget, **asked)
            assert np.bincount(y[found.indices]).tolist() == counts
    for asked in ({"per_class": 4}, {"size": 12, "balanced": True}):
        with pytest.warns(attar.SkewWarning, match="Classes have 10 to 60 examples"):
            found = attar.select(source, "uniform", **asked)
        assert np.bincount(y[found.indices]).tolist() == [4, 4, 4]


def test_the_radius_of_k_center_is_at_most_four_times_the_best_possible(tmp_path: Path) -> None:
    for seed in range(4):
        x = np.exp(np.random.default_rng(seed).standard_normal((16, 2))).astype(np.float32)
        np.save(tmp_path / f"{seed}.npy", x)
        distances = torch.cdist(torch.from_numpy(x), torch.from_numpy(x))
        best = min(float(distances[list(some)].amin(0).max()) for some in combinations(range(16), 2))
        plan = large.plan(InParts(tmp_path / f"{seed}.npy"), KCenter(), size=2, part=8)
        assert (plan.parts, plan.how) == (2, "again")
        found, _ = large.run(plan)
        assert float(distances[found.indices].amin(0).max()) <= 4 * best


def test_uniform_takes_every_row_equally_often() -> None:
    counts = torch.zeros(50)
    for seed in range(400):
        gen, parts = torch.Generator().manual_seed(seed), []
        for start, rows in ((0, 21), (21, 21), (42, 8)):
            best = working.reservoir(rows, 10, gen)
            blank = torch.zeros(len(best.indices), dtype=torch.int64)
            parts.append(Rows(best.indices + start, best.scores, blank.double(), blank))
        counts[working.best_of(parts, [10], divided=False).numbers] += 1
    # Each row is in one of five samples: 80 times of 400, with a deviation of 8; four deviations for 50 rows.
    assert float((counts - 80).abs().max()) < 32
    assert float(counts.sum()) == 4000


def test_ranks_by_score_lose_nothing_in_parts(tmp_path: Path) -> None:
    source = parquet(tmp_path)
    whole, parts = (pick(source, "entropy", size=150, part=part) for part in (4096, 64))
    assert torch.equal(whole.indices, parts.indices)


def test_facility_location_from_parts_is_nearly_as_good_as_from_all(tmp_path: Path) -> None:
    source = parquet(tmp_path)
    whole, parts = (pick(source, "craig", size=20, part=part) for part in (1000, 128))
    view = large.plan(InParts(source, **COLUMNS), KCenter(), size=1, part=1000)
    assert view.parts == 1

    def ways(found: Selection) -> float:  # the objective, of the last layer's inputs
        return float(torch.cdist(torch.from_numpy(X), torch.from_numpy(X[found.indices])).amin(1).sum())

    random = [ways(pick(source, "uniform", size=20, seed=seed)) for seed in range(10)]
    assert ways(parts) < sum(random) / 10
    assert ways(parts) < 1.15 * ways(whole)


def test_local_processes_give_the_same_bits(tmp_path: Path) -> None:
    source = parquet(tmp_path)
    assert same(pick(source, "craig", size=12, workers=2), pick(source, "craig", size=12))


SLOWLY = """
import importlib, time
import attar
run, work = (importlib.import_module(f"attar.select.large.{{name}}") for name in ("run", "work"))

def slowly(task, todo):
    if todo.turns[0].number == 4:
        time.sleep(3600)
    return work.work(task, todo)

run.work = slowly
attar.select({source!r}, "craig", features="emb", label="y", id="key", size=12, part=128, folder={folder!r},
             training=attar.Training(steps=20))
"""


def test_a_killed_selection_goes_on_where_it_was_and_ends_in_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, folder = parquet(tmp_path), tmp_path / "parts"
    started = python(SLOWLY.format(source=source, folder=str(folder)))
    wait_until(lambda: (folder / "picks-0-3.safetensors").exists())
    started.send_signal(signal.SIGKILL)
    started.communicate(timeout=HANG)
    ran: list[int] = []

    def counted(task: Task, todo: Todo) -> Done:
        ran.extend(turn.number for turn in todo.turns)
        return real(task, todo)

    monkeypatch.setattr(running, "work", counted)
    again = pick(source, "craig", size=12, folder=folder)
    assert ran == [4, 5, 6, 7, 8]
    assert same(again, pick(source, "craig", size=12))
    ran.clear()
    assert same(again, pick(source, "craig", size=12, folder=folder))
    assert not ran


def test_finished_jobs_are_kept_when_a_file_is_corrupt_and_only_its_jobs_run_after_it_is_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, folder = parquet(tmp_path), tmp_path / "parts"
    whole = (tmp_path / "1.parquet").read_bytes()
    corrupt(tmp_path / "1.parquet", 1, "emb")
    message = (
        r"1.parquet is not a complete table \(.*\): .*; 4 of 9 parts are finished and kept in .*: the same command"
    )
    with pytest.raises(AttarError, match=message):
        pick(source, "k-center", size=12, folder=folder)
    (tmp_path / "1.parquet").write_bytes(whole)
    ran: list[int] = []

    def counted(task: Task, todo: Todo) -> Done:
        ran.extend(turn.number for turn in todo.turns)
        return real(task, todo)

    monkeypatch.setattr(running, "work", counted)
    again = pick(source, "k-center", size=12, folder=folder)
    assert ran == [3, 4, 5, 6, 7, 8]  # the one before was of the file that changed
    assert same(again, pick(source, "k-center", size=12))


def test_after_a_row_is_dropped_only_the_parts_of_its_file_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, folder = parquet(tmp_path), tmp_path / "parts"
    pick(source, "k-center", size=12, folder=folder)
    pq.write_table(table(1, 300), tmp_path / "0.parquet", row_group_size=100)  # all later rows have other numbers
    ran: list[int] = []

    def counted(task: Task, todo: Todo) -> Done:
        ran.extend(turn.number for turn in todo.turns)
        return real(task, todo)

    monkeypatch.setattr(running, "work", counted)
    again = pick(source, "k-center", size=12, folder=folder)
    assert ran == [0, 1, 2]
    assert same(again, pick(source, "k-center", size=12))


@pytest.mark.parametrize("method", ["k-center", "craig"])
def test_no_union_of_picks_is_larger_than_a_part_though_all_rows_are_one_row_group(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq.write_table(table(), tmp_path / "t.parquet", row_group_size=900)
    sizes: list[int] = []
    select = working.pick

    def counted(task: Task, rows: Rows, number: int, gen: torch.Generator) -> Rows:
        sizes.append(len(rows.numbers))
        return select(task, rows, number, gen)

    monkeypatch.setattr(working, "pick", counted)
    found = pick(str(tmp_path / "t.parquet"), method, size=10, part=40)
    assert len(set(found.indices.tolist())) == 10
    assert len(sizes) > 24  # 23 parts, unions of their 230 picks, and the last
    assert max(sizes) <= 40


def test_finished_parts_of_one_row_group_are_kept_and_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source, folder = str(tmp_path / "t.parquet"), tmp_path / "parts"
    pq.write_table(table(), source, row_group_size=900)
    ran: list[int] = []
    stop = [12]
    select = working.picked

    def stopped(task: Task, number: int, batch: Any) -> Rows:
        if number in stop:
            raise AttarError("Stopped.")
        ran.append(number)
        return select(task, number, batch)

    monkeypatch.setattr(working, "picked", stopped)
    with pytest.raises(AttarError, match="Stopped; 10 of 15 parts are finished and kept in"):  # five parts in a file
        pick(source, "k-center", size=12, part=64, folder=folder)
    stop.clear()
    ran.clear()
    again = pick(source, "k-center", size=12, part=64, folder=folder)
    assert ran == [10, 11, 12, 13, 14]
    assert same(again, pick(source, "k-center", size=12, part=64))


def test_a_turn_alone_sends_what_a_whole_job_writes(tmp_path: Path) -> None:
    pq.write_table(table(), tmp_path / "t.parquet", row_group_size=900)
    plan = large.plan(InParts(tmp_path / "t.parquet", **COLUMNS), KCenter(), size=12, part=64)
    task = plan.task(plan.scorer())
    marks = tuple(Mark(tmp_path / str(turn.number), "") for turn in plan.turns)
    assert real(task, Todo(tuple(plan.turns), marks)).rows is None
    sent, written = real(task, Todo((plan.turns[1],))).rows, marks[1].load()
    assert sent is not None
    assert written is not None
    assert torch.equal(sent.numbers, written.numbers)
    assert torch.equal(sent.x, written.x)  # type: ignore[arg-type]
    assert sent.keys == written.keys


def test_a_sample_that_cannot_be_read_says_that_parts_are_kept(tmp_path: Path) -> None:
    source = parquet(tmp_path)
    corrupt(tmp_path / "1.parquet", 1, "emb")
    with pytest.raises(AttarError, match=r"not a complete table .*; finished parts are kept in .*: the same command"):
        pick(source, "craig", size=12, folder=tmp_path / "parts")
    with pytest.raises(AttarError, match=r"leave that file out\.$"):  # without a folder nothing is kept
        pick(source, "craig", size=12)


def test_a_folder_of_another_selection_is_refused(tmp_path: Path) -> None:
    source = parquet(tmp_path)
    pick(source, "k-center", size=12, folder=tmp_path / "parts")
    with pytest.raises(AttarError, match=r"holds parts of a selection with another seed \(0, not 1\)"):
        pick(source, "k-center", size=12, folder=tmp_path / "parts", seed=1)


def test_damaged_marks_are_set_aside_and_made_again(tmp_path: Path) -> None:
    source, folder = parquet(tmp_path), tmp_path / "parts"
    first = pick(source, "k-center", size=12, folder=folder)
    mark = folder / "picks-0-2.safetensors"
    mark.write_bytes(mark.read_bytes()[:-7])
    with pytest.warns(UserWarning, match="picks-0-2.safetensors.unreadable-1, and its parts are selected from again"):
        again = pick(source, "k-center", size=12, folder=folder)
    assert same(first, again)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"memory": "100MB"}, "A part of 128 rows needs about 4.* MB of memory, and 100.0 MB is allowed"),
        ({"memory": "much"}, "memory is a number of bytes such as 500MB"),
        ({"label": None, "per_class": 2, "size": None}, "Class balance needs labels"),
        ({"label": None}, "Scoring these examples needs labels|This needs labels"),
        ({"per_class": 2}, "Give the budget as one of"),
        ({"size": None, "per_class": 500}, "Class 'class .' has .* examples, but 500 per class"),
        ({"size": 1000}, "There are 900 examples, but 1000 were asked for"),
        ({"network": "mlp"}, "Vectors need no network"),
        ({"labels": Y}, "leave these out"),
        ({"id": "y"}, r"Key 'class .' of column 'y' of .* is in row \d+ and in row \d+"),
        ({"address": "127.0.0.1:9"}, "is of a Ray cluster: choose the engine ray"),
        ({"address": "127.0.0.1:9", "engine": "ray"}, "No Ray cluster answers at 127.0.0.1:9"),
    ],
)
def test_bad_requests_are_one_sentence(asked: dict[str, Any], message: str, tmp_path: Path) -> None:
    if "engine" in asked:
        pytest.importorskip("ray", reason="ray is an extra: pip install 'attar[ray]'")
    with pytest.raises(AttarError, match=message):
        pick(parquet(tmp_path), "craig", **{"size": 12, **asked})


@pytest.mark.parametrize("method", ["el2n", "forgetting", "glister-val"])
def test_methods_that_need_all_the_data_are_refused(method: str, tmp_path: Path) -> None:
    with pytest.raises(AttarError, match=r"trains networks of its own on all examples|need a validation set"):
        pick(parquet(tmp_path), method, size=8)


def test_ray_that_is_not_installed_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not there
    said = r"^This needs the package ray: run pip install 'attar\[ray\]'; 0 of 9 parts are finished"
    with pytest.raises(AttarError, match=said):
        pick(parquet(tmp_path), "k-center", size=8, engine="ray", folder=tmp_path / "parts")


def test_a_job_runs_on_one_thread_and_gives_the_others_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with working.one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_rows_may_be_sorted_by_class(tmp_path: Path) -> None:
    order = Y.argsort(kind="stable")
    made = table().take(order)
    pq.write_table(made, tmp_path / "t.parquet", row_group_size=100)
    found = pick(str(tmp_path / "t.parquet"), "k-center", per_class=3)
    assert found.classes is not None
    assert [found.classes.count(f"class {c}") for c in range(4)] == [3] * 4


@pytest.mark.parametrize("method", ["k-center-doubling", "sieve-streaming"])
def test_streams_pass_once_and_go_on_after_a_bad_file_in_the_same_bits(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, folder = parquet(tmp_path), tmp_path / "parts"
    whole = (tmp_path / "2.parquet").read_bytes()
    found = pick(source, method, size=12)
    assert len(set(found.indices.tolist())) == 12
    assert found.rows == [KEYS[i] for i in found.indices.tolist()]
    fed: list[int] = []
    read = streaming.turns_read

    def counted(columns: InParts, turns: list[Turn], *, x: bool) -> Any:
        for turn, parts in read(columns, turns, x=x):
            if turn.number == 7 and bad:
                raise AttarError("Row 712 is bad.")
            fed.append(turn.number)
            yield turn, parts

    monkeypatch.setattr(streaming, "turns_read", counted)
    bad = True
    with pytest.raises(AttarError, match=r"Row 712 is bad; finished parts are kept in .*: the same command goes on"):
        pick(source, method, size=12, folder=folder)
    assert fed == [0, 1, 2, 3, 4, 5, 6]
    bad = False
    fed.clear()
    assert same(pick(source, method, size=12, folder=folder), found)
    assert fed == [7, 8]
    (tmp_path / "2.parquet").write_bytes(whole)  # with another time: its rows are read again, those before it are not
    fed.clear()
    assert same(pick(source, method, size=12, folder=folder), found)
    assert fed == [6, 7, 8]
    with pytest.raises(AttarError, match="A stream is not divided into classes"):
        pick(source, method, per_class=2)
