"""What is true of any coreset: its file holds all of it, and merging keeps every label by its name."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attar import Coreset, Data
from attar.core.errors import AttarError
from attar.data import Classes, Spec
from attar.data.formats import safetensors_
from attar.data.spec import element_of
from attar.data.transform import Standard
from attar.recipe import Recipe
from tests.conformance import equal
from tests.strategies import CLASSES, SHAPES, TEXT, damaged, rows


@st.composite
def coresets(draw: st.DrawFn, shape: tuple[int, ...] | None = None, hard: bool | None = None) -> Coreset:
    """Any few examples, with hard or soft labels, with or without weights, rows and keys."""
    target = draw(CLASSES)
    n, shape = draw(st.integers(1, 5)), draw(SHAPES) if shape is None else shape
    x = torch.from_numpy(draw(rows(n, shape, "float32")))
    y = torch.tensor(draw(st.lists(st.integers(0, len(target) - 1), min_size=n, max_size=n)))
    if not (draw(st.booleans()) if hard is None else hard):
        y = 0.7 * torch.eye(len(target))[y] + 0.3 / len(target)
    weights = torch.arange(1.0, n + 1) if draw(st.booleans()) else None
    places = torch.arange(n) * 7 if draw(st.booleans()) else None
    keys = {7 * k: draw(TEXT) for k in range(n)} if places is not None and draw(st.booleans()) else None
    spec = Spec(element_of(shape), target, Standard.fit(torch.cat([x, x + 1])), draw(TEXT))
    recipe = Recipe(
        method=draw(TEXT),
        per_class=1,
        seed=draw(st.integers(0, 2**31)),
        data=draw(TEXT),
        fingerprint="f",
        network="linear",
        version="0",
    )
    return Coreset(Data(x, y, weights, spec, places, keys), recipe, indices=places)


def through_a_file(coreset: Coreset) -> Coreset:
    with TemporaryDirectory() as folder:
        coreset.save(Path(folder) / "c.safetensors")
        return Coreset.load(Path(folder) / "c.safetensors")


@given(coresets(), st.none() | st.floats(1e-6, 1e6))
def test_a_file_holds_all_of_a_coreset(coreset: Coreset, step_size: float | None) -> None:
    coreset = replace(coreset, step_size=step_size)
    loaded = through_a_file(coreset)
    assert equal(loaded.data, coreset.data)
    assert loaded.recipe == coreset.recipe
    assert loaded.rows == coreset.rows
    assert loaded.step_size == step_size
    assert loaded.data.spec.target == coreset.data.spec.target
    assert loaded.data.spec.name == coreset.data.spec.name
    assert torch.equal(loaded.pixels(), coreset.pixels())


def named(coreset: Coreset) -> list[str]:
    names = coreset.data.spec.target.names
    return [names[label] for label in coreset.data.hard]


@given(st.data(), SHAPES)
def test_merging_keeps_every_example_with_its_label_by_name(data: st.DataObject, shape: tuple[int, ...]) -> None:
    parts = [data.draw(coresets(shape)) for _ in range(data.draw(st.integers(1, 3)))]
    merged = parts[0].merge(*parts[1:])
    assert len(merged) == sum(map(len, parts))
    assert named(merged) == [name for part in parts for name in named(part)]
    assert set(merged.data.spec.target.names) == {name for part in parts for name in part.data.spec.target.names}
    stored = torch.cat([part.pixels() for part in parts])
    assert torch.allclose(merged.pixels(), stored, atol=1e-4 * max(1.0, float(stored.abs().max())))
    if any(part.data.weights is not None for part in parts):
        assert merged.data.weights is not None
        assert merged.data.weights.sum() == sum(
            float(len(part) if part.data.weights is None else part.data.weights.sum()) for part in parts
        )


@given(coresets(hard=False, shape=(2,)), CLASSES)
def test_soft_labels_keep_every_share_and_give_none_to_new_classes(coreset: Coreset, more: Classes) -> None:
    other = replace(coreset, data=Data(coreset.data.x, coreset.data.hard % len(more), spec=Spec.of((2,), more.names)))
    merged = coreset.merge(other)
    places = merged.data.spec.target.places(coreset.data.spec.target.names)
    assert torch.equal(merged.data.y[: len(coreset), places], coreset.data.y)
    assert torch.allclose(merged.data.y.sum(1), torch.ones(len(merged)))


def saved() -> bytes:
    x = torch.arange(12.0).reshape(6, 2)
    spec = Spec.of((2,), ["a", "b", "c"], Standard.fit(x), "few")
    recipe = Recipe(method="m", per_class=2, seed=0, data="few", fingerprint="f", network="linear", version="0")
    coreset = Coreset(Data(x, torch.arange(6) % 3, torch.ones(6), spec, torch.arange(6)), recipe, torch.arange(6))
    with TemporaryDirectory() as folder:
        coreset.save(Path(folder) / "c.safetensors")
        return (Path(folder) / "c.safetensors").read_bytes()


WHOLE = saved()


@pytest.mark.parametrize("read", [Coreset.load, safetensors_.read], ids=["loaded", "read as data"])
@settings(max_examples=150)
@given(content=damaged(WHOLE))
def test_a_damaged_coreset_is_read_or_refused_in_one_sentence(read: Callable[[Path], object], content: bytes) -> None:
    with TemporaryDirectory() as folder, suppress(AttarError):
        (Path(folder) / "c.safetensors").write_bytes(content)
        read(Path(folder) / "c.safetensors")


@pytest.mark.parametrize(
    ("word", "instead"), [(b"vector", b"victor"), (b"element", b"elephat"), (b'{\\"name', b'[\\"name')]
)
def test_a_damaged_coreset_read_as_data_is_refused_in_one_sentence(word: bytes, instead: bytes, tmp_path: Path) -> None:
    assert len(word) == len(instead)
    assert word in WHOLE
    (tmp_path / "c.safetensors").write_bytes(WHOLE.replace(word, instead))
    with pytest.raises(AttarError, match=r"c\.safetensors"):
        safetensors_.read(tmp_path / "c.safetensors")


@given(st.integers(0, len(WHOLE) - 1))
def test_a_coreset_that_lost_its_end_is_refused(length: int) -> None:
    with TemporaryDirectory() as folder:
        (Path(folder) / "c.safetensors").write_bytes(WHOLE[:length])
        with pytest.raises(AttarError, match="not a complete safetensors file"):
            Coreset.load(Path(folder) / "c.safetensors")
