from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from attar.core.errors import AttarError
from attar.core.files import write_tensors
from attar.data import Split
from attar.data.foreign import arrays, examples, pick
from attar.nets.losses import targets
from tests.known import gaussians, images


def split(channels: int = 1) -> Split:
    data = images(channels=channels)
    return Split(data, data, data)


def scaled(channels: int = 1) -> np.ndarray[Any, Any]:
    return images(channels=channels).x.numpy()


def classes() -> np.ndarray[Any, Any]:
    return images().y.numpy()


def one_hot() -> np.ndarray[Any, Any]:
    return np.eye(3, dtype=np.float32)[classes()]


def read(x: Any, y: Any, **stated: Any) -> Any:
    return examples(x, y, split(), **{"scaling": "standard", **stated})


def test_scaled_examples_and_classes_are_taken_as_they_are() -> None:
    found = read(scaled(), classes())
    assert torch.equal(found.x, images().x)
    assert torch.equal(found.y, images().y)
    assert found.spec.target.names == ("row 0", "row 1", "row 2")


def test_channels_may_come_last_or_be_left_out() -> None:
    coloured = scaled(3)
    last = examples(coloured.transpose(0, 2, 3, 1), classes(), split(3), scaling="standard")
    assert torch.equal(last.x, images(channels=3).x)
    assert torch.equal(read(scaled()[:, 0], classes()).x, images().x)


def test_bytes_are_pixels() -> None:
    pixels = (255 * images().spec.stored(images().x)).round().numpy().astype(np.uint8)
    found = read(pixels, classes(), scaling="none")
    assert torch.allclose(found.x, torch.from_numpy(pixels).float() / 255)


def test_every_convention_gives_the_targets_that_it_means() -> None:
    wanted = torch.from_numpy(one_hot()) - 1 / 3
    shifted = read(scaled(), one_hot() - 1 / 3, convention="centred").y
    assert torch.allclose(targets(shifted, 3).float(), wanted, atol=1e-6)
    assert torch.allclose(targets(read(scaled(), one_hot(), convention="targets").y, 3).float(), wanted)
    assert torch.equal(read(scaled(), one_hot(), convention="probabilities").y, torch.from_numpy(one_hot()))


def test_weights_are_kept() -> None:
    own = np.arange(24, dtype=np.float64)
    assert read(scaled(), classes(), weights=own).weights.tolist() == own.tolist()


@pytest.mark.parametrize(
    ("x", "y", "stated", "sentence"),
    [
        (scaled()[:, :, :6], classes(), {}, r"have shape \(1, 6, 8\), and those of rows \(1, 8, 8\): reshape"),
        (scaled().reshape(24, 64), classes(), {}, r"have shape \(64,\)"),
        (np.array([["a"]] * 24), classes(), {}, "cannot be used"),
        (scaled(), classes()[:5], {}, "24 examples and 5 labels"),
        (scaled(), classes() + 1, {}, "go from 1 to 3, and there are 3 classes: number them from 0"),
        (scaled(), classes() + 0.5, {}, "neither whole numbers nor rows"),
        (scaled(), one_hot()[:, :2], {}, r"have shape \(24, 2\), and rows has 3 classes"),
        (scaled(), one_hot(), {}, "rows of numbers: what its labels mean"),
        (scaled(), one_hot() - 1 / 3, {}, "most likely centred"),
        (scaled(), one_hot(), {"convention": "centred"}, "sum to 1, so they are not centred: state targets"),
        (scaled(), one_hot() - 1 / 3, {"convention": "targets"}, "sum to 0, so they are not targets: state centred"),
        (scaled(), 2 * one_hot(), {"convention": "probabilities"}, "are not probabilities"),
        (scaled(), classes(), {"convention": "centred"}, "is for rows: leave it out"),
        (scaled(), one_hot(), {"convention": "centered"}, "did you mean 'centred'"),
        (scaled(), classes(), {"scaling": "zac"}, "Unknown scaling 'zac'"),
        (9 * scaled(), classes(), {"scaling": "none"}, "are not pixels between 0 and 1: state the scaling"),
        (np.abs(scaled()), classes(), {}, "look like pixels, and not like images scaled by standard"),
        (scaled() * np.nan, classes(), {}, "hold NaN or Inf"),
        (scaled(), np.nan * one_hot(), {"convention": "targets"}, "hold NaN or Inf"),
        (scaled(), classes(), {"weights": np.zeros(24)}, "Weights must be"),
        (scaled(), classes(), {"weights": np.ones(3)}, "Weights must be"),
    ],
)
def test_what_contradicts_its_description_is_refused(x: Any, y: Any, stated: dict[str, Any], sentence: str) -> None:
    with pytest.raises(AttarError, match=sentence):
        read(x, y, **stated)


def test_tables_may_hold_any_values() -> None:
    data = gaussians()
    found = examples(data.x.abs().numpy(), data.y.numpy(), Split(data, data, data), scaling="standard")
    assert len(found) == len(data)


def test_arrays_come_from_three_formats_and_never_from_a_pickle(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", images=scaled(), labels=classes())
    np.save(tmp_path / "b.npy", classes())
    write_tensors(tmp_path / "c.safetensors", {"images": images().x}, {})
    assert set(arrays(tmp_path / "a.npz")) == {"images", "labels"}
    assert arrays(tmp_path / "b.npy")["b"].tolist() == classes().tolist()
    assert np.array_equal(arrays(tmp_path / "c.safetensors")["images"], scaled())
    np.save(tmp_path / "objects.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "objects.npz", images=np.array([{}], dtype=object))
    for name, sentence in (
        ("objects.npy", "not a complete .npy file"),
        ("objects.npz", "not a complete archive of plain arrays"),
        ("d.pt", "is a pickle, which could run any code"),
        ("e.npz", "There is no file"),
    ):
        with pytest.raises(AttarError, match=sentence):
            arrays(tmp_path / name)
    (tmp_path / "f.xyz").write_text("")
    with pytest.raises(AttarError, match="is not known: give arrays as"):
        arrays(tmp_path / "f.xyz")


def test_a_missing_array_is_answered_with_those_that_exist(tmp_path: Path) -> None:
    with pytest.raises(AttarError, match="has no array 'x': name one of images, labels"):
        pick({"labels": classes(), "images": scaled()}, "x", "a.npz")
