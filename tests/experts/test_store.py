import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from attar.core.cost import Cost, measure, resident
from attar.core.errors import AttarError
from attar.experts import Manifest, Trajectories
from attar.experts.manifest import Expert
from attar.experts.store import shard, write_expert
from attar.nets import network
from attar.nets.train import Training
from tests.known import damaged, generator

MIB = 2**20
NET = network("linear", (7,), 3)
MANIFEST = Manifest("some-data", "f00d", "linear", (7,), 3, NET.size, 5, Training(), 0, "float32", 3)


def numbers(manifest: Manifest, index: int) -> torch.Tensor:
    """Vectors that say where they lie: 100 × trajectory + epoch."""
    rows = 100.0 * index + torch.tensor(manifest.checkpoints) / manifest.epoch
    return rows[:, None].expand(-1, manifest.size)


def store(folder: Path, manifest: Manifest = MANIFEST) -> Trajectories:
    expert = Expert(1, 0.5, 0.9, Cost(1.0, 2.0, 3))
    manifest = replace(manifest, experts=(expert,) * manifest.trajectories)
    manifest.save(folder)
    for index in range(manifest.trajectories):
        write_expert(folder, manifest, index, numbers(manifest, index), expert)
    return Trajectories.open(folder)


def test_a_vector_is_that_of_its_trajectory_and_epoch(tmp_path: Path) -> None:
    made = store(tmp_path)
    assert (len(made), made.epochs, made.size) == (3, 5, 24)
    for index in range(3):
        for epoch in range(6):
            vector = made.vector(index, epoch)
            assert vector.dtype == torch.float32
            assert torch.equal(vector, torch.full((24,), 100.0 * index + epoch))


def test_a_vector_read_is_one_s_own(tmp_path: Path) -> None:
    made = store(tmp_path)
    made.vector(0, 1).zero_()
    assert float(made.vector(0, 1)[0]) == 1


def test_reading_vectors_takes_no_memory_but_theirs(tmp_path: Path) -> None:
    large = replace(MANIFEST, size=MIB, epochs=23, training=Training(steps=23), trajectories=1)  # 96 MiB
    made = store(tmp_path, large)
    made.vector(0, 0)
    before = resident()
    with measure(every=0.001) as cost:
        for epoch in range(24):
            assert float(made.vector(0, epoch)[-1]) == epoch
    assert cost.memory - before < 24 * MIB


def test_draws_are_even_and_within_what_was_asked(tmp_path: Path) -> None:
    made, gen = store(tmp_path), generator()
    seen = Counter(made.draw(gen, first=2, last=4) for _ in range(900))
    assert set(seen) == {(index, epoch) for index in range(3) for epoch in (2, 3, 4)}
    assert min(seen.values()) > 60  # 100 each on average, deviation below 10
    assert {epoch for _, epoch in (made.draw(gen) for _ in range(300))} == set(range(6))
    assert made.draw(gen, first=5)[1] == 5


FINE = replace(MANIFEST, every=12)  # of 60 steps: 0, 0.2, 0.4, 0.6, 0.8, 1, 2, 3, 4, 5


def test_fractions_of_the_first_epoch_are_times_too(tmp_path: Path) -> None:
    made, gen = store(tmp_path, FINE), generator()
    assert made.times == (0, 0.2, 0.4, 0.6, 0.8, 1, 2, 3, 4, 5)
    assert float(made.vector(2, 0.4)[0]) == pytest.approx(200.4)
    assert {epoch for _, epoch in (made.draw(gen, 0.2, 0.7) for _ in range(99))} == {0.2, 0.4, 0.6}
    assert made.draw(gen, 0.9, 1.4)[1] == 1


@pytest.mark.parametrize(
    ("every", "epoch", "epochs", "expected"),
    [
        (12, 60, 5, 0.8),  # the checkpoint after 48 steps
        (20, 60, 5, 40 / 60),
        (0, 60, 5, 1),
        (1, 8, 9, 5),
        (1, 8, 2, 2),  # 16 steps in all
    ],
)
def test_networks_are_early_after_forty_steps_whatever_the_length_of_an_epoch(
    tmp_path: Path, every: int, epoch: int, epochs: int, expected: float
) -> None:
    training = Training(steps=epoch * epochs)
    assert store(tmp_path, replace(MANIFEST, every=every, epochs=epochs, training=training)).early == expected


@pytest.mark.parametrize(
    ("ahead", "last", "expected"),
    [
        (0.2, 0.0, {(0, 0.2)}),
        (0.2, 0.5, {(0, 0.2), (0.2, 0.4), (0.4, 0.6)}),
        (0.1, 0.0, {(0, 0.2)}),  # the first checkpoint at or after that time
        (0.5, None, {(0, 0.6), (0.2, 0.8), (0.4, 1)}),  # from 0.6 on there is no checkpoint so far ahead
        (1, 1, {(0, 1), (1, 2)}),
        (2, None, {(0, 2), (1, 3), (2, 4), (3, 5)}),
        (0.001, 0.0, {(0, 0.2)}),  # at least a step
    ],
)
def test_a_target_lies_so_many_epochs_ahead(
    tmp_path: Path, ahead: float, last: float | None, expected: set[tuple[float, float]]
) -> None:
    made, gen, seen = store(tmp_path, FINE), generator(), set()
    for _ in range(99):
        (trajectory, epoch), start, target = made.pair(gen, ahead, last)
        assert float(start[0]) == pytest.approx(100 * trajectory + epoch)
        seen.add((epoch, round(float(target[0]) - 100 * trajectory, 2)))
    assert seen == expected


def test_fractions_that_add_up_to_the_end_are_within_it(tmp_path: Path) -> None:
    made = store(tmp_path, replace(FINE, epochs=1, training=Training(steps=60)))
    assert {made.pair(generator(seed), 0.8, 0.2)[0][1] for seed in range(20)} == {0, 0.2}  # 1 - 0.8 < 0.2 in floats


def test_checkpoints_that_are_not_there_are_asked_for_with_a_command(tmp_path: Path) -> None:
    made = store(tmp_path)
    for attempt in (
        lambda: made.pair(generator(), 0.2, 0.0),
        lambda: made.draw(generator(), 0.1, 0.2),
        lambda: made.vector(0, 0.2),
    ):
        with pytest.raises(AttarError, match=r"no checkpoint at epoch 0\.2: run `attar experts some-.* --every 12`"):
            attempt()
    for attempt in (lambda: made.pair(generator(), 1.5, 0.0), lambda: made.vector(0, 1.5)):
        with pytest.raises(AttarError, match=r"no checkpoint at epoch 1\.5, because only the first epoch"):
            attempt()


def test_a_manifest_from_before_has_whole_epochs(tmp_path: Path) -> None:
    store(tmp_path)
    path = tmp_path / "manifest.json"
    said = json.loads(path.read_text())
    del said["every"]
    path.write_text(json.dumps(said))
    found = Trajectories.open(tmp_path)
    assert found.times == (0, 1, 2, 3, 4, 5)
    assert found.manifest.identity == MANIFEST.identity


def test_the_same_generator_draws_the_same(tmp_path: Path) -> None:
    made = store(tmp_path)
    a, b = ([made.draw(gen) for _ in range(20)] for gen in (generator(2), generator(2)))
    assert a == b


@pytest.mark.parametrize(("first", "last"), [(6, None), (0, 6), (-1, 3), (4, 3)])
def test_epochs_beyond_the_trajectory_are_refused(tmp_path: Path, first: int, last: int | None) -> None:
    with pytest.raises(AttarError, match=r"the trajectories have 0 to 5: .*--epochs"):
        store(tmp_path).draw(generator(), first, last)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ((0, 6), "There is no epoch 6: .* to 5"),
        ((0, -1), "There is no epoch -1"),
        ((3, 0), "no trajectory 3: .* 0 to 2"),
    ],
)
def test_places_that_are_not_there_are_refused(tmp_path: Path, place: tuple[int, int], message: str) -> None:
    with pytest.raises(AttarError, match=message):
        store(tmp_path).vector(*place)


def test_the_network_and_the_data_must_be_those_of_the_experts(tmp_path: Path) -> None:
    made = store(tmp_path)
    made.check(NET)
    made.check(NET, "f00d")
    with pytest.raises(AttarError, match=r"are linear for shape \(7,\).* asked for is mlp-d1w5"):
        made.check(network("mlp-d1w5", (7,), 3))
    with pytest.raises(AttarError, match=r"shape \(7,\).*shape \(8,\)"):
        made.check(network("linear", (8,), 3))
    with pytest.raises(AttarError, match=r"'some-data' with fingerprint f00d, but this data has .*beef"):
        made.check(NET, "beef")


def test_no_store_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(AttarError, match=r"no experts in .*: make them with `attar experts DATA"):
        Trajectories.open(tmp_path / "nowhere")


def test_more_trajectories_than_there_are_is_refused(tmp_path: Path) -> None:
    store(tmp_path)
    assert len(Trajectories.open(tmp_path, 2)) == 2
    with pytest.raises(AttarError, match="has 3 trajectories, not 4"):
        Trajectories.open(tmp_path, 4)


@pytest.mark.parametrize("kept", [0, 4, 60, -1])
def test_a_file_cut_off_in_the_middle_is_named(tmp_path: Path, kept: int) -> None:
    store(tmp_path)
    path = shard(tmp_path, 1)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(AttarError, match=r"trajectory-0001\.safetensors is not a complete traj.*run `attar experts"):
        Trajectories.open(tmp_path)


def test_a_file_cut_off_after_opening_is_named(tmp_path: Path) -> None:
    made = store(tmp_path)
    path = shard(tmp_path, 2)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(AttarError, match="trajectory-0002"):
        made.vector(2, 5)
    assert float(made.vector(1, 5)[0]) == 105


def test_a_file_that_is_gone_or_of_another_store_is_named(tmp_path: Path) -> None:
    store(tmp_path / "a")
    store(tmp_path / "b", replace(MANIFEST, seed=1))
    shard(tmp_path / "b", 0).replace(shard(tmp_path / "a", 0))
    with pytest.raises(AttarError, match=r"trajectory-0000.*belongs to another store"):
        Trajectories.open(tmp_path / "a")
    with pytest.raises(AttarError, match=r"trajectory-0000.*the file is missing"):
        Trajectories.open(tmp_path / "b")


def test_a_file_with_a_flipped_bit_is_refused_or_gives_finite_numbers(tmp_path: Path) -> None:
    small = replace(MANIFEST, epochs=1, trajectories=1)
    store(tmp_path, small)
    path = shard(tmp_path, 0)
    refused = 0
    for broken in damaged(path.read_bytes()):
        path.write_bytes(broken)
        try:
            found = Trajectories.open(tmp_path).vector(0, 1)
        except AttarError:
            refused += 1
        else:
            assert found.shape == (24,)
            assert bool(torch.isfinite(found).all())
    assert refused > 50


@pytest.mark.parametrize(("old", "new"), [('"epochs": 5', '"epochs": "many"'), ('"size"', '"syze"'), ("{", "[")])
def test_a_manifest_that_was_changed_is_refused(tmp_path: Path, old: str, new: str) -> None:
    store(tmp_path)
    path = tmp_path / "manifest.json"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(AttarError, match=r"manifest\.json is not"):
        Trajectories.open(tmp_path)


@pytest.mark.parametrize("epoch", [1, 2, 7, 35, 175, 210])
def test_a_time_between_checkpoints_of_the_first_epoch_is_the_next_one_and_never_untrained(
    tmp_path: Path, epoch: int
) -> None:
    every = max(1, epoch // 10) if epoch > 1 else 0  # as `attar experts` makes them by default
    made = store(tmp_path, replace(MANIFEST, epochs=1, every=every, training=Training(steps=epoch)))
    _, drawn = made.draw(generator(), 0.2, 0.2)
    if epoch == 1:
        assert drawn == 1
    else:
        assert 0 < drawn * epoch - max(1, round(0.2 * epoch)) + 1 <= every
