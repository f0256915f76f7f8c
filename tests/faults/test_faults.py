"""A sample of what ``make faults``, ``make kills`` and ``make soak`` do at length."""

import errno
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.faults import kills, soak
from tests.faults.__main__ import tried
from tests.faults.scenes import SCENES, copied, state
from tests.faults.shim import HARMS, KILLED, Fault, Shim
from tests.faults.stage import Ended, Ready, ended, forked, problem, ready, stage

HERE = [name for name, scene in SCENES.items() if not scene.workers]


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with stage() as made:
        yield made


@pytest.fixture(scope="module")
def scenes(place: Path) -> dict[str, Ready]:
    return {name: ready(name, place) for name in ("experts", "infer", "download", "select")}


@pytest.mark.parametrize("harm", HARMS)
def test_after_a_fault_nothing_is_lost_and_another_run_ends_in_the_same_bits(
    harm: str, place: Path, scenes: dict[str, Ready]
) -> None:
    chance = Random(harm)
    for scene in scenes.values():
        at = chance.randint(1, len(scene.operations))
        assert tried(scene, place, Fault(at, harm)) == "", f"{scene.name}, {at}, {scene.operations[at - 1]}"


def test_the_same_after_signals_at_random_moments(place: Path, scenes: dict[str, Ready]) -> None:
    total = kills._empty(0)
    for number in range(3):
        assert kills.killed(scenes["experts"], place, Random(number), total)[0] == ""
    assert total["kills"] > 0


def test_losses_and_other_results_are_found(place: Path, scenes: dict[str, Ready]) -> None:
    """The harness can fail: it is told of files that are gone, of other results and of internal errors."""
    scene = scenes["experts"]
    folder = copied(scene.before, place / scene.name)
    (folder / "store" / "trajectory-0000.safetensors").unlink()
    assert problem(scene, folder, Ended(KILLED, "", [])).startswith("lost ['store/trajectory-0000")
    changed = scene._replace(after=scene.after | {"store/manifest.json": {}})
    folder = copied(scene.before, place / scene.name)
    assert problem(changed, folder, Ended(KILLED, "", [])) == "ends in other results: ['store/manifest.json']"
    assert problem(scene, folder, Ended(1, "", [])).startswith("ended with 1")
    assert problem(scene, folder, Ended(2, "Traceback", [])).startswith("traceback")


def written(folder: Path, fault: Fault) -> tuple[int, str]:
    """Two files, written in a child with this fault; what it wrote into the file of its output at the end."""

    def work() -> None:
        shim = Shim(folder, fault)
        shim.install()
        for name in ("a", "b"):
            try:
                (folder / name).write_text("0123456789")
                (folder / name).rename(folder / f"{name}{name}")
            except OSError as error:
                print(errno.errorcode[error.errno or 0], end=" ", flush=True)
        print(len(shim.done), flush=True)

    out = folder.with_name("out")
    return ended(forked(work, out)), out.read_text()


@pytest.mark.parametrize(
    ("fault", "code", "said", "names"),
    [
        (Fault(), 0, "6\n", {"aa": 10, "bb": 10}),
        (Fault(1, "EIO"), 0, "EIO 4\n", {"bb": 10}),
        (Fault(2, "EIO"), 0, "EIO 6\n", {"a": 10, "bb": 10}),
        (Fault(3, "ENOSPC"), 0, "ENOSPC ENOSPC 4\n", {"a": 10}),
        (Fault(2, "kill"), KILLED, "", {"a": 5}),
        (Fault(3, "kill"), KILLED, "", {"a": 10}),
        (Fault(6, "kill"), KILLED, "", {"aa": 10, "b": 10}),
    ],
)
def test_a_fault_happens_where_it_should(
    fault: Fault, code: int, said: str, names: dict[str, int], tmp_path: Path
) -> None:
    folder = tmp_path / "box"
    folder.mkdir()
    assert written(folder, fault) == (code, said)
    sizes = {path.name: path.stat().st_size for path in folder.iterdir()}
    assert sizes.keys() == names.keys()
    assert sizes == names or fault == Fault(2, "EIO")  # the rest of a failed write is written when the file is closed


def test_costs_do_not_count_as_results(tmp_path: Path) -> None:
    for name, wall in (("a", 1), ("b", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.json").write_text(f'{{"score": 1, "cost": {{"wall": {wall}}}}}')
    assert state(tmp_path / "a") == state(tmp_path / "b")
    (tmp_path / "b" / "x.json").write_text('{"score": 2}')
    assert state(tmp_path / "a") != state(tmp_path / "b")


def test_a_leak_is_not_flat(tmp_path: Path) -> None:
    soak.once(tmp_path)
    memory, files, threads = soak.held()
    assert soak.summary([(memory, files, threads)] * 20)["flat"]
    for leak in ((memory // 10, 0, 0), (0, 1, 0), (0, 0, 1)):
        seen = [(memory + k * leak[0], files + k * leak[1], threads + k * leak[2]) for k in range(20)]
        assert not soak.summary(seen)["flat"]
