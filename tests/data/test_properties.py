"""What is true of any split, transform, spec and mapped file."""

from contextlib import suppress
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from torch import Tensor

from attar.core.errors import AttarError
from attar.data import Classes, Data, Image, Mapped, Spec, Split, Tokens, load
from attar.data.raw import Raw
from attar.data.spec import Element, Vector
from attar.data.split import cut
from attar.data.transform import ZCA, Embedding, Identity, Standard, Transform, restore, same
from tests.known import generator
from tests.strategies import CLASSES, SHAPES, TEXT, damaged, labels, rows

SHARES = st.floats(0.01, 0.99)
SEEDS = st.integers(0, 2**32)


@st.composite
def arrays(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """What a user gives: examples and whole numbers as labels, at least three of every class."""
    y = draw(labels(least=3))
    x = draw(rows(len(y), draw(SHAPES), draw(st.sampled_from(["uint8", "float32", "float64"]))))
    return x, np.array(draw(st.lists(st.integers(-99, 99), min_size=3, max_size=3, unique=True)))[y]


def parts(split: Split) -> tuple[Data, Data, Data]:
    return split.train, split.val, split.test


def places(data: Data) -> list[int]:
    assert data.rows is not None
    found: list[int] = data.rows.tolist()
    return found


@given(arrays(), SHARES, SHARES, SEEDS)
def test_every_row_of_the_user_is_in_one_set_and_every_set_has_every_class(
    given: tuple[NDArray[Any], NDArray[np.int64]], val: float, test: float, seed: int
) -> None:
    x, y = given
    split = load((x, y), val=val, test=test, seed=seed, scaling="none")
    assert sorted(row for part in parts(split) for row in places(part)) == list(range(len(x)))
    for part in parts(split):
        assert places(part) == sorted(places(part))  # in the order of the user
        assert set(part.y.tolist()) == set(range(split.classes))


@given(arrays(), SEEDS, st.sampled_from(["none", "standard"]))
def test_a_row_is_the_user_s_own_example_and_label(
    given: tuple[NDArray[Any], NDArray[np.int64]], seed: int, scaling: str
) -> None:
    x, y = given
    split = load((x, y), seed=seed, scaling=scaling)
    rounding = 1e-5 * max(1.0, float(np.abs(x.astype(np.float64)).max()))
    for part in parts(split):
        own = torch.from_numpy(x[places(part)].astype(np.float32)) / (255 if x.dtype == np.uint8 else 1)
        assert torch.allclose(part.spec.stored(part.x), own, atol=rounding)
        assert [part.spec.target.names[label] for label in part.y] == [str(label) for label in y[places(part)]]


@given(arrays(), SHARES, SEEDS, SEEDS)
def test_the_test_set_is_the_same_for_every_seed_and_every_validation_share(
    given: tuple[NDArray[Any], NDArray[np.int64]], val: float, seed: int, other: int
) -> None:
    first, second = load(given, seed=seed, scaling="none"), load(given, seed=other, val=val, scaling="none")
    assert places(first.test) == places(second.test)
    assert first.test.fingerprint == second.test.fingerprint
    assert not set(places(first.test)) & {*places(second.train), *places(second.val)}


@given(labels(least=2, classes=4), SHARES, SEEDS)
def test_a_cut_takes_its_share_of_every_class_and_leaves_what_it_must(
    y: NDArray[np.int64], share: float, seed: int
) -> None:
    raw = Raw(np.arange(len(y), dtype=np.float32)[:, None], y, np.arange(len(y)))
    left, taken = cut(raw, share, generator(seed), keep=1)
    assert sorted([*left.rows, *taken.rows]) == list(range(len(y)))
    for part in (left, taken):
        assert np.array_equal(part.x[:, 0], part.rows)
        assert np.array_equal(part.y, y[part.rows])
    for count, rest, gone in zip(*(np.bincount(found) for found in (y, left.y, taken.y)), strict=True):
        assert gone + rest == count
        assert gone == min(max(1, round(share * count)), count - 1)


@st.composite
def examples(draw: st.DrawFn) -> Tensor:
    return torch.from_numpy(draw(rows(draw(st.integers(2, 8)), draw(SHAPES), "float32")))


@given(examples(), st.sampled_from([Standard.fit, ZCA.fit]))
def test_a_fitted_transform_goes_there_and_back_and_comes_again_from_its_tensors(x: Tensor, fit: Any) -> None:
    x = x.double()
    transform: Transform = fit(x)
    seen = transform.apply(x)
    assert seen.shape == x.shape
    assert bool(torch.isfinite(seen).all())
    assert torch.allclose(transform.invert(seen), x, atol=1e-6 * max(1.0, float(x.abs().max())))
    again = restore(transform.kind, transform.tensors())
    assert same(transform, again)
    assert torch.equal(again.apply(x), seen)


@given(examples())
def test_standard_examples_have_zero_mean_and_unit_deviation_unless_a_channel_is_constant(x: Tensor) -> None:
    seen = Standard.fit(x.double()).apply(x.double()).transpose(0, 1).flatten(1)
    given = x.double().transpose(0, 1).flatten(1)
    for channel, raw in zip(seen, given, strict=True):
        if float(raw.std(correction=0)) > 1e-5 * float(raw.abs().mean()):
            assert float(channel.mean()) == pytest.approx(0, abs=1e-4)
            assert float(channel.std(correction=0)) == pytest.approx(1, abs=1e-3)


@st.composite
def tables(draw: st.DrawFn) -> Tensor:
    """Embeddings of different words that differ."""
    shape = draw(st.tuples(st.integers(2, 6), st.integers(1, 4)))
    table = torch.from_numpy(draw(hnp.arrays("float32", shape, elements=st.integers(-50, 50))))
    assume(len(table.unique(dim=0)) == len(table))
    return table


@given(tables(), SEEDS)
def test_tokens_come_back_from_their_embeddings_and_from_anything_near_them(table: Tensor, seed: int) -> None:
    tokens = torch.randint(len(table), (5, 3), generator=generator(seed))
    transform = Embedding(table)
    seen = transform.apply(tokens)
    assert torch.equal(transform.invert(seen), tokens)
    near = seen + 0.4 / seen.shape[-1] ** 0.5 * (2 * torch.rand(seen.shape, generator=generator(seed)) - 1)
    assert torch.equal(transform.invert(near), tokens)  # words are at least 1 apart
    assert torch.equal(restore("embedding", transform.tensors()).apply(tokens), seen)


@st.composite
def specs(draw: st.DrawFn) -> Spec:
    element: Element
    transform: Transform = Identity()
    match draw(st.sampled_from(["image", "vector", "tokens"])):
        case "image":
            element = Image(*draw(st.tuples(*[st.integers(1, 4)] * 3)))
        case "vector":
            element = Vector(draw(st.lists(TEXT, min_size=1, max_size=4).map(tuple)))
        case _:
            words = draw(st.lists(TEXT, min_size=2, max_size=5, unique=True).map(tuple))
            element, transform = (
                Tokens(draw(st.integers(1, 5)), words),
                Embedding(torch.arange(3.0 * len(words)).view(-1, 3)),
            )
    if not isinstance(element, Tokens):
        x = torch.from_numpy(draw(rows(3, element.shape, "float32")))
        transform = draw(st.sampled_from([Identity(), Standard.fit(x), ZCA.fit(x)]))
    return Spec(element, draw(CLASSES), transform, draw(TEXT))


@given(specs())
def test_a_spec_that_was_packed_is_the_same_when_it_is_unpacked(spec: Spec) -> None:
    tensors, text = spec.pack()
    again = Spec.unpack({**tensors, "x": torch.zeros(1)}, text)
    assert (again.element, again.target, again.name) == (spec.element, spec.target, spec.name)
    assert same(again.transform, spec.transform)
    assert again.pack()[1] == text


@given(CLASSES, CLASSES, CLASSES)
def test_a_union_of_classes_has_every_name_once_and_keeps_the_first_labels(a: Classes, b: Classes, c: Classes) -> None:
    both = a.union(b)
    assert both.names[: len(a)] == a.names
    assert set(both.names) == {*a.names, *b.names}
    assert len(set(both.names)) == len(both)
    assert both.union(c) == a.union(b.union(c))
    assert a.union(a) == a


@given(CLASSES, CLASSES)
def test_a_label_keeps_its_name_at_its_place_among_more_classes(a: Classes, b: Classes) -> None:
    both = a.union(b)
    for part in (a, b):
        assert tuple(both.names[place] for place in both.places(part.names)) == part.names


@given(CLASSES, CLASSES)
def test_classes_match_themselves_and_numbers_and_whatever_matches_them(a: Classes, b: Classes) -> None:
    assert a.matches(a)
    assert a.matches(Classes.of(len(a)))
    assert a.matches(b) == b.matches(a)
    if len(a) != len(b):
        assert not a.matches(b)


def npy(array: NDArray[Any]) -> bytes:
    file = BytesIO()
    np.save(file, array)
    return file.getvalue()


def mapped(content: bytes, y: NDArray[np.int64]) -> list[Data]:
    """All of a file, in chunks and then at once."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.npy"
        path.write_bytes(content)
        data = Mapped(path, y)
        return [*data.chunks(3), data.take(torch.arange(len(data)))]


@given(st.data(), st.sampled_from(["u1", "i2", "<i8", ">i8", "f2", ">f4", "f4", "f8"]), st.sampled_from("CF"))
def test_a_file_of_any_numbers_is_mapped_as_floats(data: st.DataObject, dtype: str, order: Any) -> None:
    y = data.draw(labels())
    x = data.draw(rows(len(y), data.draw(SHAPES), np.dtype(dtype).newbyteorder("=").name)).astype(dtype)
    *chunks, whole = mapped(npy(np.asarray(x, order=order)), y)
    expected = torch.from_numpy(x.astype(np.float32)) / (255 if dtype == "u1" else 1)
    assert torch.equal(whole.x, expected)
    assert torch.equal(torch.cat([chunk.x for chunk in chunks]), expected)
    assert whole.y.tolist() == y.tolist()
    assert [row for chunk in chunks for row in places(chunk)] == list(range(len(y)))


WHOLE, SIX = npy(np.arange(18, dtype=np.float32).reshape(6, 3)), np.arange(6) % 3


@settings(max_examples=150)
@given(damaged(WHOLE))
@example(WHOLE.replace(b"}", b"]"))
@example(WHOLE.replace(b"(6, 3)", b"(06,3)"))
def test_a_damaged_file_is_mapped_or_refused_in_one_sentence(content: bytes) -> None:
    with suppress(AttarError):
        mapped(content, SIX)


@given(st.integers(0, len(WHOLE) - 1))
def test_a_file_that_lost_its_end_is_not_mapped(length: int) -> None:
    with pytest.raises(AttarError, match=r"complete \.npy file"):
        mapped(WHOLE[:length], SIX)
