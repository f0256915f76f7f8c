from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from attar import Coreset, Data, Recipe, Training
from attar.core.cost import Cost
from attar.core.errors import AttarError
from attar.core.files import read_tensors, write_tensors
from attar.data import Spec, Split
from attar.data.transform import ZCA, Identity
from attar.reduce import reduce
from tests.known import damaged, gaussians, generator, images, spec_header

RECIPE = Recipe(
    "dm",
    per_class=2,
    seed=3,
    data="rows",
    fingerprint="ab",
    network="mlp-d1w8",
    version="1",
    options={"batch": 7, "strategy": "none"},
    descent={"steps": 9, "clip": None},
    training=Training(steps=11, augment="flip"),
    cost=Cost(1.5, 2.5, 3),
)


def coreset(**changes: Any) -> Coreset:
    data = images(2)
    full = Coreset(replace(data, weights=torch.rand(6, generator=generator())), RECIPE, torch.arange(6), 0.03)
    return replace(full, **changes)


def saved(tmp_path: Path, made: Coreset | None = None) -> Path:
    (made or coreset()).save(tmp_path / "coreset.safetensors")
    return tmp_path / "coreset.safetensors"


def test_all_that_is_needed_to_train_on_it_again_is_in_the_file(tmp_path: Path) -> None:
    made, loaded = coreset(), Coreset.load(saved(tmp_path))
    assert made.data.weights is not None
    assert loaded.data.weights is not None
    assert loaded.indices is not None
    assert torch.equal(loaded.data.x, made.data.x)
    assert torch.equal(loaded.data.y, made.data.y)
    assert torch.equal(loaded.data.weights, made.data.weights)
    assert loaded.indices.tolist() == [0, 1, 2, 3, 4, 5]
    assert loaded.step_size == 0.03
    assert loaded.recipe == RECIPE
    assert (loaded.data.spec.name, loaded.data.spec.target.names) == ("rows", ("row 0", "row 1", "row 2"))
    assert torch.equal(loaded.pixels(), made.pixels())


def test_what_a_coreset_has_not_stays_away(tmp_path: Path) -> None:
    loaded = Coreset.load(saved(tmp_path, Coreset(images(1), RECIPE)))
    assert [loaded.data.weights, loaded.indices, loaded.step_size] == [None, None, None]


@pytest.mark.parametrize("name", ["none", "zca"])
def test_every_scaling_comes_back(name: str, tmp_path: Path) -> None:
    data = images(8)
    scaling = Identity() if name == "none" else ZCA.fit(data.x)
    made = Coreset(Data(data.x, data.y, spec=Spec.of(data.shape, "abc", scaling, "d")), RECIPE)
    assert torch.equal(Coreset.load(saved(tmp_path, made)).pixels(), made.pixels())


def test_classes_without_names_come_back(tmp_path: Path) -> None:
    data = gaussians(2)
    loaded = Coreset.load(saved(tmp_path, Coreset(Data(data.x, data.y), RECIPE)))
    assert loaded.data.classes == 3


def test_soft_labels_come_back(tmp_path: Path) -> None:
    soft = torch.rand(6, 3, generator=generator())
    loaded = Coreset.load(saved(tmp_path, coreset(data=replace(images(2), y=soft))))
    assert torch.equal(loaded.data.y, soft)
    assert torch.equal(loaded.data.hard, soft.argmax(1))


def test_pixels_are_in_the_units_of_the_original_data() -> None:
    pixels = coreset().pixels()
    assert 0 <= pixels.min().item() < pixels.max().item() <= 1


def test_it_gives_what_scikit_learn_and_pytorch_take() -> None:
    made = coreset()
    with pytest.warns(UserWarning, match="leaves out the weights"):
        x, y = made.numpy()
    assert x.shape == (6, 64)
    assert x.dtype == np.float32
    assert y.tolist() == made.data.y.tolist()
    (batch, labels, _weights), *_ = DataLoader(made.dataset(), batch_size=4)
    assert torch.equal(batch, made.data.x[:4])
    assert torch.equal(labels, made.data.y[:4])
    assert len(made) == 6


def test_a_loaded_coreset_does_not_change_with_its_file(tmp_path: Path) -> None:
    path = saved(tmp_path)
    loaded, before = Coreset.load(path), coreset().data.x
    size = path.stat().st_size
    with path.open("rb+") as file:
        file.write(b"\0" * size)
    assert torch.equal(loaded.data.x, before)


def test_every_flipped_bit_is_one_sentence(tmp_path: Path) -> None:
    path = saved(tmp_path)
    for broken in damaged(path.read_bytes()):
        path.write_bytes(broken)
        with pytest.raises(AttarError) as refused:
            Coreset.load(path)
        assert "\n" not in str(refused.value)


def test_equal_coresets_are_equal_bytes_and_their_cost_is_beside_them(tmp_path: Path) -> None:
    made = coreset()
    dear = replace(made, recipe=replace(made.recipe, cost=Cost(1.0, 2.0, 3)))
    made.save(tmp_path / "a")
    dear.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert Coreset.load(tmp_path / "b").recipe.cost == Cost(1.0, 2.0, 3)
    (tmp_path / "b.cost").unlink()
    assert Coreset.load(tmp_path / "b").recipe.cost == Cost()


@pytest.mark.parametrize("length", [0, 4, 8, 100, -1000, -1])
def test_a_file_cut_short_is_refused(length: int, tmp_path: Path) -> None:
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(AttarError, match="not a complete safetensors file"):
        Coreset.load(path)


@pytest.mark.parametrize("content", [b"", b"hello", b"\x80\x04\x95", b"\x89PNG\r\n\x1a\n" + bytes(64), b"\xff" * 64])
def test_a_file_of_another_kind_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(content)
    with pytest.raises(AttarError, match="not a complete safetensors file"):
        Coreset.load(tmp_path / "other")


def test_another_safetensors_file_is_refused(tmp_path: Path) -> None:
    write_tensors(tmp_path / "other", {"x": torch.zeros(2, 3)}, {})
    with pytest.raises(AttarError, match="not a coreset of this library"):
        Coreset.load(tmp_path / "other")
    with pytest.raises(AttarError, match="is a folder or a device, not a file"):
        Coreset.load(tmp_path)


@pytest.mark.parametrize("name", ["x", "y", "transform.mean", "transform.std"])
def test_a_missing_tensor_is_refused(name: str, tmp_path: Path) -> None:
    path = saved(tmp_path)
    tensors, header = read_tensors(path)
    write_tensors(path, {key: value for key, value in tensors.items() if key != name}, header)
    with pytest.raises(AttarError, match="corrupt or incompatible"):
        Coreset.load(path)


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("y", lambda y: y + 1, r"labels must be integers in 0\.\.2"),
        ("y", lambda y: y - 1, "labels must be"),
        ("y", lambda y: y.float(), "labels must be"),
        ("y", lambda y: torch.rand(6, 4), "labels must be"),
        ("y", lambda y: y[:5], "same length"),
        ("x", lambda x: x[:0], "same length"),
        ("x", lambda x: x.int(), "example of shape"),
        ("x", lambda x: x[:, 0], "example of shape"),
        ("weights", lambda w: -w, "non-negative"),
        ("weights", lambda w: 0 * w, "not all zero"),
        ("weights", lambda w: w.long(), "weights must be"),
        ("weights", lambda w: w[:, None], "weights must be"),
        ("indices", lambda i: i[:5], "indices must be"),
        ("indices", lambda i: i.float(), "indices must be"),
        ("step_size", lambda s: -s, "step size must be positive"),
        ("step_size", lambda s: s.expand(2), "."),
        ("transform.mean", lambda m: torch.zeros(3), "another shape"),
        ("transform.std", lambda s: torch.ones(2, 2), "."),
        ("transform.std", lambda s: 0 * s, "transform"),
    ],
)
def test_a_tensor_that_does_not_fit_is_refused(
    name: str, change: Callable[[Tensor], Tensor], reason: str, tmp_path: Path
) -> None:
    path = saved(tmp_path)
    tensors, header = read_tensors(path)
    write_tensors(path, tensors | {name: change(tensors[name])}, header)
    with pytest.raises(AttarError, match=f"corrupt or incompatible .*{reason}"):
        Coreset.load(path)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("recipe", "{"),
        ("recipe", "{}"),
        ("recipe", '{"surprise": 1}'),
        ("spec", "[]"),
        ("spec", spec_header(classes=3)),
        ("spec", spec_header(transform="zca")),
        ("spec", spec_header(transform="magic")),
        ("spec", spec_header(classes=["a"])),
        ("spec", spec_header(element={"kind": "tokens", "length": 8, "vocabulary": []})),
        ("spec", spec_header(element={"kind": "vector", "columns": ["a"]})),
        ("spec", "[" * 100_000),
    ],
)
def test_a_changed_header_is_refused(key: str, text: str, tmp_path: Path) -> None:
    path = saved(tmp_path)
    tensors, header = read_tensors(path)
    write_tensors(path, tensors, header | {key: text})
    with pytest.raises(AttarError, match="corrupt or incompatible"):
        Coreset.load(path)


def test_examples_that_are_not_finite_are_not_written(tmp_path: Path) -> None:
    path = saved(tmp_path)
    before = path.read_bytes()
    bad = coreset(data=images(2).map(lambda x: x.log()))
    with pytest.raises(AttarError, match="NaN or Inf in 'x'"):
        bad.save(path)
    assert path.read_bytes() == before


def test_weights_and_soft_labels_are_carried_or_warned_of() -> None:
    plain = reduce(gaussians(8), "uniform", per_class=2, network="mlp-d1w5", training=Training(steps=2))
    weighted = replace(plain, data=replace(plain.data, weights=torch.tensor([4.0, 1, 1, 1, 1, 0])))
    soft = replace(plain, data=replace(plain.data, y=torch.eye(3)[plain.data.y] - 1 / 3))
    assert len(plain.dataset().tensors) == 2
    assert torch.equal(weighted.dataset().tensors[2], weighted.data.weights)
    assert torch.equal(soft.dataset().tensors[1], soft.data.y)
    plain.numpy()  # without a warning
    with pytest.warns(UserWarning, match=r"numpy\(\) leaves out the weights \(coreset.data.weights\)"):
        weighted.numpy()
    with pytest.warns(UserWarning, match=r"leaves out the soft labels"):
        soft.numpy()
    assert "weights worth 3.2 of 6 examples" in repr(weighted)  # 8² / 20
    assert "worth" not in repr(plain)


def split_of_rows() -> Split:
    data = images(2)
    return Split(data, data, data)


def test_arrays_from_elsewhere_become_a_coreset_that_is_read_back(tmp_path: Path) -> None:
    data = images(2)
    made = Coreset.from_arrays(
        data.x.numpy(), data.y.numpy(), data=split_of_rows(), scaling="standard", training=Training(steps=4), source="x"
    )
    loaded = Coreset.load(saved(tmp_path, made))
    assert loaded.recipe == made.recipe
    assert (made.recipe.method, made.recipe.per_class, made.recipe.sampler) == ("foreign", 2, "ensemble")
    assert torch.equal(loaded.pixels(), data.spec.stored(data.x))


def test_what_arrays_do_not_say_is_asked_for_at_once() -> None:
    data = images(2)
    with pytest.raises(AttarError, match=r"state the data .*; how its examples are scaled .*; how to train on it"):
        Coreset.from_arrays(data.x, data.y)
    with pytest.raises(AttarError, match="was not loaded with the scaling zca"):
        Coreset.from_arrays(data.x, data.y, data=split_of_rows(), scaling="zca", training=Training())


def test_regression_targets_recommend_a_sampler_for_them_and_soft_labels_none() -> None:
    data, rows = images(2), torch.nn.functional.one_hot(images(2).y).float()
    stated = {"data": split_of_rows(), "scaling": "standard"}
    squared = Training(loss="squared")
    found = Coreset.from_arrays(data.x, rows, convention="targets", training=squared, **stated)
    assert found.recipe.sampler == "last-layer-vi"
    found = Coreset.from_arrays(data.x, rows, convention="probabilities", training=Training(), **stated)
    assert found.recipe.sampler == "ensemble"
    with pytest.raises(AttarError, match="are not for the loss squared: state cross-entropy"):
        Coreset.from_arrays(data.x, rows, convention="probabilities", training=squared, **stated)
