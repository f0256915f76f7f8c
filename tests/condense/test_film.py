"""A film shows what was there, survives a kill, and is believed only if it is whole."""

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pytest
import torch
from torch import Tensor

from attar.condense.contract import Descent
from attar.condense.dm import DM
from attar.condense.driver import Condensation, Step
from attar.condense.film import CLASSES, NUMBERS, Film, moments, places
from attar.condense.observers import checkpoint, film
from attar.condense.source import Labels, Pixels
from attar.core.errors import AttarError, Diverged
from attar.core.files import read_tensors, write_tensors
from attar.data import Data, Spec
from attar.data.transform import Standard
from tests.known import gaussian_task, generator

TASK = gaussian_task(8, network="mlp-d1w8")
SCALING = Standard(torch.arange(6.0), torch.arange(1.0, 7.0))
START = Data(TASK.data.x[:6], torch.tensor([1, 1, 0, 2, 2, 0]), spec=Spec.of(TASK.data.shape, "abc", SCALING, "toy"))


def run(steps: int = 10, lr: float = 0.1, labels: Labels = "hard", identity: str = "") -> Condensation:
    source = Pixels(START, labels)
    return Condensation(DM(batch=4, strategy="none"), TASK, source, Descent(steps=steps, lr=lr), generator(1), identity)


def finish(steps: Iterable[Step]) -> None:
    for _ in steps:
        pass


def same(one: Film, other: Film) -> bool:
    return one.frames.keys() == other.frames.keys() and all(
        torch.equal(one.frames[step], other.frames[step]) for step in one.frames
    )


def test_frames_are_the_examples_before_the_first_step_at_steps_evenly_apart_and_at_the_end(tmp_path: Path) -> None:
    path, seen = tmp_path / "films" / "run.safetensors", {0: START.x}
    for step in film(run(), path):
        seen[step.number] = step.run.examples.x
    shown = Film.load(path)
    assert list(shown.frames) == [0, 2, 4, 6, 8, 10]
    assert shown.labels.tolist() == [0, 1, 2]
    for number, frame in shown.frames.items():
        assert torch.equal(frame, SCALING.invert(seen[number][[2, 0, 3]]))  # the first of each class


def test_before_and_after_differ_and_before_stays_what_it_was(tmp_path: Path) -> None:
    condensation = run()
    finish(film(condensation, tmp_path / "film.safetensors"))
    assert torch.equal(condensation.first.x, START.x)
    assert not torch.equal(condensation.examples.x, START.x)


def test_examples_are_followed_by_place_even_where_a_learnt_label_changes(tmp_path: Path) -> None:
    path, condensation = tmp_path / "film.safetensors", run(labels="targets")
    for step in film(condensation, path):
        if step.number == 3:
            with torch.no_grad():
                condensation.source.y.copy_(condensation.source.y.roll(1, 1))  # type: ignore[operator]
    assert torch.equal(Film.load(path).frames[10], SCALING.invert(condensation.examples.x[[2, 0, 3]]))


@pytest.mark.parametrize("saved_at", [1, 4, 5])
def test_the_film_of_a_resumed_run_is_that_of_an_undisturbed_one(saved_at: int, tmp_path: Path) -> None:
    path, state = tmp_path / "film.safetensors", tmp_path / "state.safetensors"
    finish(film(run(), tmp_path / "whole.safetensors"))
    first = run()
    for step in islice(film(first, path), 7):  # further than what was saved, so that a frame comes again
        if step.number == saved_at:
            first.save(state)
    frames = dict(Film.load(path).frames)
    spoilt = {number: x + 1 if number > saved_at else x for number, x in frames.items()}
    Film(torch.arange(3), spoilt, 10).save(path)
    resumed = run()
    resumed.resume(state)
    finish(film(resumed, path))
    assert same(Film.load(path), Film.load(tmp_path / "whole.safetensors"))


def test_a_run_that_was_killed_has_a_whole_film_so_far(tmp_path: Path) -> None:
    path = tmp_path / "film.safetensors"
    seen = [list(Film.load(path).frames) for _ in film(run(4), path, frames=3)]
    assert seen == [[0], [0, 2], [0, 2], [0, 2, 4]]


def test_a_frame_is_on_the_disk_before_its_step_is_saved(tmp_path: Path) -> None:
    path, state = tmp_path / "film.safetensors", tmp_path / "state.safetensors"
    for _ in islice(film(checkpoint(run(), state, every=2), path), 3):  # step 2 is saved, step 3 is under way
        pass
    resumed = run()
    resumed.resume(state)
    assert resumed.number in Film.load(path).frames


def test_the_film_of_another_run_is_not_gone_on_with(tmp_path: Path) -> None:
    path, state = tmp_path / "film.safetensors", tmp_path / "state.safetensors"
    first = run(identity="this")
    finish(islice(first, 5))
    first.save(state)
    finish(film(run(identity="another"), path))
    resumed = run(identity="this")
    resumed.resume(state)
    finish(film(resumed, path))
    assert list(Film.load(path).frames) == [0, 6, 8, 10]  # what was before is not known


def test_a_film_that_is_not_whole_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "film.safetensors"
    path.write_bytes(b"half a fil")
    with pytest.warns(UserWarning, match=r"kept as film\.safetensors\.unreadable-1, and the film begins anew"):
        finish(film(run(), path))
    assert len(Film.load(path).frames) == 6
    assert path.with_name("film.safetensors.unreadable-1").read_bytes() == b"half a fil"


def test_a_film_that_cannot_be_read_now_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "film.safetensors"
    path.symlink_to("/proc/self/mem")  # the system refuses to map it
    with pytest.raises(AttarError, match="Could not read"):
        finish(film(run(), path))
    assert path.is_symlink()


def test_a_run_that_diverges_says_so_and_not_that_a_frame_is_not_finite(tmp_path: Path) -> None:
    with pytest.raises(Diverged, match="learning rate below"):
        finish(film(run(10, lr=1e38), tmp_path / "film.safetensors", frames=11))
    assert 0 in Film.load(tmp_path / "film.safetensors").frames


def test_few_steps_have_few_frames_and_impossible_numbers_are_refused(tmp_path: Path) -> None:
    assert moments(3, 6) == {0, 1, 2, 3}
    assert moments(2000, 6) == {0, 400, 800, 1200, 1600, 2000}
    for frames in (1, 21):
        with pytest.raises(AttarError, match=f"2 to 20 frames, got {frames}"):
            finish(film(run(), tmp_path / "film.safetensors", frames=frames))


def test_a_film_is_small_however_large_the_examples() -> None:
    many = Data(torch.zeros(60, 4), torch.arange(60) % 30)
    assert places(many, 6).tolist() == list(range(CLASSES))
    large = Data(torch.zeros(4, NUMBERS // 20), torch.tensor([0, 0, 1, 2]))
    assert places(large, 10).tolist() == [0, 2]
    assert places(large, 20).tolist() == [0]
    assert places(Data(torch.zeros(2, NUMBERS), torch.arange(2)), 6).tolist() == [0]


def spoil(name: str, tensor: Tensor | None) -> dict[str, Tensor]:
    whole = {"steps": torch.tensor([0, 5]), "x": torch.zeros(2, 3, 4), "labels": torch.arange(3)}
    return {key: value for key, value in {**whole, name: tensor}.items() if value is not None}


@pytest.mark.parametrize(
    ("name", "tensor"),
    [
        ("x", None),
        ("labels", None),
        ("steps", torch.tensor([0, 5, 9])),
        ("steps", torch.tensor([5, 0])),
        ("steps", torch.tensor([1, 5])),
        ("steps", torch.tensor([0, 11])),
        ("steps", torch.tensor([0.0, 5.0])),
        ("steps", torch.tensor(0)),
        ("x", torch.zeros(2, 4, 4)),
        ("x", torch.zeros(2, 3)),
        ("x", torch.zeros(2, 3, 0)),
        ("x", torch.zeros(2, 3, 4, dtype=torch.int64)),
        ("labels", torch.tensor([0, 1, -1])),
        ("labels", torch.zeros(3)),
    ],
)
def test_a_film_that_was_changed_is_refused(name: str, tensor: Tensor | None, tmp_path: Path) -> None:
    path, header = tmp_path / "film.safetensors", {"format": "attar-film-1", "identity": "", "total": "10"}
    write_tensors(path, spoil("other", None), header)
    assert Film.load(path).total == 10
    write_tensors(path, spoil(name, tensor), header)
    with pytest.raises(AttarError, match="changed after it was written"):
        Film.load(path)


@pytest.mark.parametrize("change", [{"total": "ten"}, {"total": "4"}, {"format": "other"}])
def test_a_header_that_was_changed_is_refused(change: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "film.safetensors"
    Film(torch.arange(3), {0: torch.zeros(3, 4), 5: torch.zeros(3, 4)}, 10).save(path)
    tensors, header = read_tensors(path)
    write_tensors(path, tensors, header | change)
    with pytest.raises(AttarError, match="move it away"):
        Film.load(path)
