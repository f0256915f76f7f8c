import tracemalloc
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from attar.core.errors import AttarError
from attar.data.raw import Raw, RawSplit, check, join, pack
from attar.data.split import Split, as_float, build, cut
from attar.data.transform import CACHED
from tests.data.samples import labels, pixels


def made(
    n: int = 60,
    classes: int = 3,
    held: int = 0,
    val: float = 0.1,
    test: float = 0.2,
    seed: int = 0,
    scaling: str = "none",
) -> Split:
    raw = pack(pixels(n, 2, 4, 3), labels(n, classes), "here")
    if held:
        raw = join(raw, pack(pixels(held, 2, 4, 3, seed=1), labels(held, classes), "here"), "here")
    return build(raw, "toy", "here", val=val, test=test, seed=seed, scaling=scaling)


def rows(x: torch.Tensor) -> set[bytes]:
    return {row.numpy().tobytes() for row in x}


@pytest.mark.parametrize("size", [1, 7, CACHED - 1, CACHED, CACHED + 1, 5 * CACHED + 3])
def test_pixels_are_turned_into_floats_in_place(size: int) -> None:
    x = pixels(size, 1)
    kept = x.copy()
    assert torch.equal(as_float(x), torch.from_numpy(x.astype(np.float32)) / 255)
    assert (x == kept).all()


def test_bytes_and_floats_of_a_set_are_not_in_memory_together() -> None:
    tracemalloc.start()
    split = build(
        pack(pixels(4_000, 1, 28, 28), labels(4_000, 4), "here"),
        "toy",
        "here",
        val=0.1,
        test=0.2,
        seed=0,
        scaling="standard",
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.2 * sum(part.x.nbytes for part in (split.train, split.val, split.test))


def test_every_example_is_in_exactly_one_set() -> None:
    split = made()
    parts = [rows(part.x) for part in (split.train, split.val, split.test)]
    assert sum(map(len, parts)) == len(set.union(*parts)) == 60


@pytest.mark.parametrize("counts", [(100, 40, 10), (7, 5, 3)])
def test_cut_takes_the_share_of_every_class_and_at_least_one(counts: tuple[int, ...]) -> None:
    y = np.repeat(np.arange(3), counts)
    rest, taken = cut(raw(pixels(len(y), 2), y), 0.2, torch.Generator().manual_seed(0), keep=1)
    assert np.bincount(taken.y).tolist() == [max(1, round(0.2 * n)) for n in counts]
    assert (np.bincount(rest.y) + np.bincount(taken.y)).tolist() == list(counts)


def test_cut_keeps_the_order_and_leaves_what_must_stay() -> None:
    x, y = np.arange(12, dtype=np.float32)[:, None], np.arange(12) % 2
    rest, taken = cut(raw(x, y), 0.99, torch.Generator().manual_seed(0), keep=2)
    assert np.bincount(rest.y).tolist() == [2, 2]
    assert (np.diff(rest.x[:, 0]) > 0).all()
    assert (np.diff(taken.x[:, 0]) > 0).all()
    assert (y[taken.x[:, 0].astype(int)] == taken.y).all()


def test_three_examples_of_a_class_put_one_into_every_set() -> None:
    split = made(9)
    for part in (split.train, split.val, split.test):
        assert part.y.bincount().tolist() == [1, 1, 1]


def test_a_test_set_that_comes_along_is_kept_whole_and_val_is_cut_from_train() -> None:
    split = made(60, held=9)
    assert (len(split.train), len(split.val), len(split.test)) == (54, 6, 9)
    assert torch.equal(split.test.x, torch.from_numpy(pixels(9, 2, 4, 3, seed=1)).float() / 255)


def test_same_seed_same_bits_and_another_seed_another_cut() -> None:
    assert made(seed=3).train.fingerprint == made(seed=3).train.fingerprint
    assert made(seed=3).val.fingerprint != made(seed=4).val.fingerprint


def test_the_global_random_state_is_neither_read_nor_changed() -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = made().train.fingerprint
    assert torch.equal(before, torch.get_rng_state())
    torch.manual_seed(2)
    assert made().train.fingerprint == first


def test_scaling_is_fitted_on_train_alone_and_applied_to_all() -> None:
    split = made(90, scaling="standard", held=30)
    plain = made(90, scaling="none", held=30)
    assert split.train.x.mean((0, 2, 3)).abs().max() < 1e-5
    assert torch.allclose(split.train.x.std((0, 2, 3), correction=0), torch.ones(2), atol=1e-5)
    mean, std = plain.train.x.mean((0, 2, 3), keepdim=True), plain.train.x.std((0, 2, 3), keepdim=True, correction=0)
    for scaled, raw in ((split.val, plain.val), (split.test, plain.test)):
        assert torch.allclose(scaled.x, (raw.x - mean) / std, atol=1e-5)
        assert torch.allclose(split.spec.stored(scaled.x), raw.x, atol=1e-6)


def test_all_sets_carry_one_domain() -> None:
    split = made(scaling="zca")
    assert split.train.spec is split.val.spec is split.test.spec is split.spec
    assert (split.spec.name, split.spec.target.names, split.spec.transform.kind) == ("toy", ("0", "1", "2"), "zca")
    assert (split.classes, split.shape) == (3, (2, 4, 3))


def test_the_arrays_of_the_caller_are_not_changed() -> None:
    x, y = np.ones((30, 2), np.float32) * np.arange(30, dtype=np.float32)[:, None], labels(30)
    raw = join(pack(x, y, "here"), pack(x, y, "here"), "here")
    split = build(raw, "toy", "here", val=0.2, test=0.2, seed=0, scaling="standard")
    split.test.y.zero_()
    assert (x[:, 0] == np.arange(30)).all()
    assert (y == labels(30)).all()


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, float("nan")])
def test_a_share_outside_zero_and_one_is_refused(share: float) -> None:
    with pytest.raises(AttarError, match="val is the share"):
        made(val=share)
    with pytest.raises(AttarError, match="test is the share"):
        made(test=share)


def test_unknown_scaling_suggests_the_nearest() -> None:
    with pytest.raises(AttarError, match="did you mean 'standard'"):
        made(scaling="standart")


# pack: from what users have to what readers return


def test_images_end_up_channels_first() -> None:
    assert pack(pixels(4, 6, 5), labels(4), "here").train.x.shape == (4, 1, 6, 5)
    last = pixels(4, 6, 5, 3)
    packed = pack(last, labels(4), "here").train.x
    assert packed.shape == (4, 3, 6, 5)
    assert (packed[1, 2] == last[1, :, :, 2]).all()
    first = pixels(4, 3, 6, 5)
    assert pack(first, labels(4), "here").train.x is first


def test_an_image_of_three_rows_and_columns_stays_channels_first() -> None:
    assert pack(pixels(4, 1, 3, 3), labels(4), "here").train.x.shape == (4, 1, 3, 3)


@pytest.mark.parametrize("kind", [np.float64, np.float16, np.int32, np.bool_])
def test_numbers_other_than_bytes_become_float32_unchanged(kind: type) -> None:
    x: NDArray[Any] = np.array([[0, 1], [1, 0], [1, 1]]).astype(kind)
    packed = pack(x, labels(3), "here").train.x
    assert packed.dtype == np.float32
    assert (packed == x).all()


def test_string_labels_become_sorted_class_names() -> None:
    packed = pack(pixels(4, 2), np.array(["owl", "ant", "owl", "bee"]), "here")
    assert packed.classes == ("ant", "bee", "owl")
    assert packed.train.y.tolist() == [2, 0, 2, 1]


def test_labels_may_be_whole_floats_or_a_single_column() -> None:
    assert pack(pixels(3, 2), np.array([0.0, 2.0, 1.0]), "here").train.y.tolist() == [0, 2, 1]
    assert pack(pixels(3, 2), np.array([[0], [2], [1]]), "here").train.y.tolist() == [0, 2, 1]


def test_test_labels_are_matched_to_train_by_name() -> None:
    train = pack(pixels(3, 2), np.array(["a", "b", "c"]), "here")
    test = pack(pixels(2, 2), np.array(["c", "b"]), "here")
    joined = join(train, test, "here")
    assert joined.test is not None
    assert joined.test.y.tolist() == [2, 1]
    with pytest.raises(AttarError, match="has class 'd', which train lacks"):
        join(train, pack(pixels(1, 2), np.array(["d"]), "here"), "here")


@pytest.mark.parametrize(
    ("y", "words"),
    [
        ([0.5, 1, 0], "not whole numbers"),
        ([float("nan"), 1, 0], "not whole numbers"),
        ([None, 0, 1], "labels of type object"),
    ],
)
def test_labels_that_are_no_classes_are_refused(y: list[object], words: str) -> None:
    with pytest.raises(AttarError, match=words):
        pack(pixels(3, 2), np.array(y), "here")


def test_examples_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(AttarError, match="give numbers"):
        pack(np.array([["a"], ["b"]]), labels(2), "here")


# check: the one gate


def raw(x: NDArray[Any], y: NDArray[Any]) -> Raw:
    return Raw(x, y, np.arange(len(x)))


def good(n: int = 12) -> RawSplit:
    return RawSplit(raw(pixels(n, 2), labels(n)), raw(pixels(3, 2), labels(3)), ("a", "b", "c"))


def test_check_returns_what_is_sound() -> None:
    split = good()
    assert check(split, "here", per_class=4) is split


def spoiled(value: float) -> RawSplit:
    x = pixels(12, 2).astype(np.float32)
    x[7, 1] = value
    return good()._replace(train=raw(x, labels(12)), test=None)


@pytest.mark.parametrize(
    ("split", "words"),
    [
        (good()._replace(train=raw(pixels(12, 2), labels(11))), "12 examples but 11 labels"),
        (good()._replace(train=raw(pixels(12, 2, 3, 4, 5), labels(12))), "examples of shape"),
        (good()._replace(train=raw(pixels(12), labels(12))), "examples of shape"),
        (good()._replace(train=raw(pixels(12, 2), labels(12)[:, None])), "labels of shape"),
        (good()._replace(train=raw(pixels(12, 2).astype(np.float64), labels(12))), "float64 examples"),
        (good()._replace(train=raw(pixels(12, 2), labels(12).astype(np.float32))), "float32 labels"),
        (good()._replace(train=raw(pixels(0, 2), labels(0))), "training set of here is empty"),
        (good()._replace(test=raw(pixels(0, 2), labels(0))), "test set of here is empty"),
        (good()._replace(train=raw(pixels(12, 0), labels(12))), "is empty"),
        (good()._replace(test=raw(pixels(3, 5), labels(3))), r"uint8 \(2,\) but test examples are uint8 \(5,\)"),
        (good()._replace(test=raw(np.zeros((3, 2), np.float32), labels(3))), "test examples are float32"),
        (good()._replace(train=raw(pixels(12, 2), labels(12) - 1)), "label -1 at example 0, outside 0..2"),
        (good()._replace(test=raw(pixels(3, 2), labels(3) + 1)), "label 3 at example 2, outside 0..2"),
        (RawSplit(raw(pixels(4, 2), labels(4, 1)), None, ("a",)), "only one class, 'a'"),
        (good()._replace(train=raw(pixels(12, 2), labels(12, 2))), "Class 'c' of here has 0 training examples"),
        (spoiled(np.nan), "NaN or Inf, first in example 7"),
        (spoiled(-np.inf), "NaN or Inf, first in example 7"),
    ],
)
def test_check_refuses_what_cannot_be_trained_on(split: RawSplit, words: str) -> None:
    with pytest.raises(AttarError, match=words) as caught:
        check(split, "here")
    assert "here" in str(caught.value)


def test_too_few_of_a_class_to_stratify_are_refused() -> None:
    with pytest.raises(AttarError, match="Class '2' of here has 2 training examples, but 3 are needed"):
        made(8)
    assert len(made(8, held=3).val) == 3
