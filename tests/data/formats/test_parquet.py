"""Images as bytes in Parquet, in the layout of the hub, and images of several sizes."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from attar.core.errors import AttarError
from attar.data.load import load
from tests.data.samples import labels, pixels

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def png(array: Any, size: tuple[int, int] | None = None) -> bytes:
    file = BytesIO()
    image = Image.fromarray(array)
    (image if size is None else image.resize(size)).save(file, "PNG")
    return file.getvalue()


def write(path: Path, n: int = 30, *, raw: bool = False, names: bool = True, **more: Any) -> Path:
    """Images of 6×5 pixels with three classes, as the hub writes them or as plain bytes."""
    found = [png(image) for image in pixels(n, 6, 5)]
    rows = found if raw else [{"bytes": image, "path": f"{k}.png"} for k, image in enumerate(found)]
    table = arrow.table({"image": rows, "label": labels(n), **more})
    if names:
        about = {"info": {"features": {"label": {"names": ["cow", "ant", "bee"], "_type": "ClassLabel"}}}}
        table = table.replace_schema_metadata({"huggingface": json.dumps(about)})
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(table, path)
    return path


def test_images_of_the_hub_s_layout_and_plain_bytes_are_decoded(tmp_path: Path) -> None:
    arrays = load((pixels(30, 6, 5), labels(30)))
    hub = load(write(tmp_path / "a.parquet"))
    assert hub.shape == (1, 6, 5)
    assert hub.spec.target.names == ("cow", "ant", "bee")
    assert hub.train.fingerprint == arrays.train.fingerprint
    plain = load(write(tmp_path / "b.parquet", raw=True, names=False))
    assert plain.spec.target.names == ("0", "1", "2")
    assert plain.train.fingerprint == arrays.train.fingerprint
    with pytest.warns(UserWarning, match="images in column 'image': id is not used"):
        load(write(tmp_path / "c.parquet", id=list(range(30))))


@pytest.mark.parametrize("inside", ["", "data"])
def test_a_folder_of_parts_has_the_sets_that_its_files_name(inside: str, tmp_path: Path) -> None:
    folder = tmp_path / "farm" / inside
    for k in range(2):
        write(folder / f"train-0000{k}-of-00002.parquet", 15)
    write(folder / "test-00000-of-00001.parquet", 9)
    split = load(tmp_path / "farm")
    assert (len(split.train) + len(split.val), len(split.test)) == (30, 9)
    assert split.spec.target.names == ("cow", "ant", "bee")
    write(folder / "more.parquet")
    with pytest.raises(AttarError, match=r"holds more\.parquet: call its files train-\*\.parquet"):
        load(tmp_path / "farm")


def test_files_without_such_names_are_all_of_the_training_set(tmp_path: Path) -> None:
    for k in range(2):
        write(tmp_path / "farm" / f"part-{k}.parquet", 15)
    split = load(tmp_path / "farm")
    assert len(split.train) + len(split.val) + len(split.test) == 30


def test_images_that_are_missing_or_no_images_are_named(tmp_path: Path) -> None:
    rows = [{"bytes": None, "path": "/etc/passwd"}, *({"bytes": png(image), "path": ""} for image in pixels(29, 6, 5))]
    parquet.write_table(arrow.table({"image": rows, "label": labels(30)}), tmp_path / "a.parquet")
    with pytest.raises(AttarError, match=r"image 0 of .* is the path '/etc/passwd', which is not followed"):
        load(tmp_path / "a.parquet")
    parquet.write_table(arrow.table({"image": [b"no image"] * 30, "label": labels(30)}), tmp_path / "b.parquet")
    with pytest.raises(AttarError, match=r"image 0 of .* is not a complete image in PNG or JPEG"):
        load(tmp_path / "b.parquet")


def folder_of(tmp_path: Path, *, colour: bool = False) -> Path:
    """Images of two classes and several sizes; some of them in colour."""
    for k in range(20):
        place = tmp_path / "photos" / "ab"[k % 2] / f"{k:02}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        shade = 10 * k
        mode, fill = ("RGB", (shade, 0, 255 - shade)) if colour and k % 4 == 0 else ("L", shade)
        Image.new(mode, (12 + k, 20 + 2 * k), fill).save(place)  # type: ignore[arg-type]
    return tmp_path / "photos"


def test_images_of_several_sizes_are_resized_on_request(tmp_path: Path) -> None:
    folder = folder_of(tmp_path)
    with pytest.raises(AttarError, match="bring all images to one size, such as with --resize 32"):
        load(folder)
    split = load(folder, resize="8x6", scaling="none")
    assert split.shape == (1, 8, 6)
    assert split.origin is not None
    assert split.origin.resize == "8x6"
    assert split.train.names is not None
    for name, image in zip(split.train.names, split.train.x, strict=True):
        shade = 10 * int(str(name)[2:4]) / 255
        assert np.allclose(image.numpy(), shade, atol=0.003)


def test_arrays_are_resized_like_files() -> None:
    x = np.repeat(np.repeat(pixels(30, 4, 4), 2, axis=1), 2, axis=2)
    assert load((x, labels(30)), resize=4).shape == (1, 4, 4)
    flat = np.full((30, 3, 9, 7), 0.25, np.float32)
    half = load((flat, labels(30)), resize=(4, 5), scaling="none")
    assert half.shape == (3, 4, 5)
    assert np.allclose(half.train.x.numpy(), 0.25)
    with pytest.raises(AttarError, match="holds no images, so resize is not used"):
        load((flat.reshape(30, -1), labels(30)), resize=4)
    for wrong in ("0", "axb", "8x8x8", "-3", "99999", ""):
        with pytest.raises(AttarError, match="resize is a size in pixels such as 32 or 32x48"):
            load((flat, labels(30)), resize=wrong)


def test_gray_images_among_colour_ones_are_told_of(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"15 of 20 images are gray, such as .*: as others are in colour, they are"):
        assert load(folder_of(tmp_path, colour=True), resize=8).shape == (3, 8, 8)


@pytest.mark.parametrize("shape", [(3, 128), (128, 3), (1, 64)])
def test_series_are_refused_with_a_remedy(shape: tuple[int, int]) -> None:
    x = np.zeros((30, *shape), np.float32)
    with pytest.raises(
        AttarError, match=r"look like series of length (128|64), not gray images: reshape them to \(30, "
    ):
        load((x, labels(30)))
    assert load((x.reshape(30, -1) + labels(30)[:, None], labels(30))).shape == (shape[0] * shape[1],)
    assert load((x[:, None] + labels(30)[:, None, None, None], labels(30))).shape == (1, *shape)
