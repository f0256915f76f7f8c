from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from attar.core.errors import AttarError
from attar.data.load import load
from tests.data.samples import pixels


def write(folder: Path, n: int = 4, shape: tuple[int, ...] = (6, 5), suffix: str = ".png", seed: int = 0) -> None:
    for c, name in enumerate(("cow", "ant", "bee")):
        (folder / name).mkdir(parents=True)
        for i, image in enumerate(pixels(n, *shape, seed=seed + c)):
            Image.fromarray(image).save(folder / name / f"{i}{suffix}")


@pytest.mark.parametrize("shape", [(6, 5), (6, 5, 3)])
def test_round_trip_of_png_with_a_test_set(shape: tuple[int, ...], tmp_path: Path) -> None:
    write(tmp_path / "farm" / "train", shape=shape)
    write(tmp_path / "farm" / "test", n=2, shape=shape, seed=7)
    split = load(tmp_path / "farm", scaling="none")
    assert split.spec.target.names == ("ant", "bee", "cow")
    assert split.shape == (1 if len(shape) == 2 else 3, 6, 5)
    stored = pixels(2, *shape, seed=8)[1]  # the second ant
    expected = stored[None] if stored.ndim == 2 else stored.transpose(2, 0, 1)
    assert torch.equal(split.test.x[1], torch.from_numpy(expected.copy()).float() / 255)
    assert split.test.y.tolist() == [0, 0, 1, 1, 2, 2]


def test_a_folder_per_class_without_a_test_set_and_with_other_files(tmp_path: Path) -> None:
    write(tmp_path / "farm")
    (tmp_path / "farm" / "ant" / "notes.txt").write_text("not an image")
    (tmp_path / "farm" / ".hidden").mkdir()
    Image.fromarray(pixels(6, 5)).save(tmp_path / "farm" / ".hidden" / "0.png")
    split = load(tmp_path / "farm")
    assert (len(split.train), len(split.val), len(split.test)) == (6, 3, 3)


def test_classes_may_be_called_like_files_of_other_formats(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "ant").rename(tmp_path / "meta")
    assert load(tmp_path).spec.target.names == ("bee", "cow", "meta")


def test_jpeg_is_read_nearly_as_it_was(tmp_path: Path) -> None:
    for name, value in (("dark", 40), ("light", 200)):
        (tmp_path / name).mkdir()
        for i in range(3):
            Image.fromarray(np.full((8, 8, 3), value + i, np.uint8)).save(tmp_path / name / f"{i}.JPG", quality=95)
    split = load(tmp_path, scaling="none")
    assert split.spec.target.names == ("dark", "light")
    assert ((split.train.x * 255 - torch.tensor([40.0, 200.0])[split.train.y][:, None, None, None]).abs() < 5).all()


def test_gray_among_colour_is_repeated_over_the_channels(tmp_path: Path) -> None:
    write(tmp_path, shape=(6, 5, 3))
    Image.fromarray(pixels(6, 5)).save(tmp_path / "ant" / "0.png")
    with pytest.warns(UserWarning, match=r"1 of 12 images are gray, such as .*0\.png"):
        split = load(tmp_path, scaling="none")
    everything = torch.cat([split.train.x, split.val.x, split.test.x])
    gray = (everything[:, 0] == everything[:, 1]).flatten(1).all(1)
    assert int(gray.sum()) == 1
    assert (everything[gray][0] * 255).round().byte().numpy().tolist() == [pixels(6, 5).tolist()] * 3


def test_images_of_two_sizes_are_refused_by_both_names(tmp_path: Path) -> None:
    write(tmp_path)
    Image.fromarray(pixels(7, 5)).save(tmp_path / "bee" / "2.png")
    with pytest.raises(
        AttarError, match=r"ant/0\.png has 5×6 pixels but .*bee/2\.png has 5×7: bring all images to one"
    ):
        load(tmp_path)


def test_test_images_of_another_size_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "train")
    write(tmp_path / "test", shape=(7, 5))
    with pytest.raises(AttarError, match=r"uint8 \(1, 6, 5\) but test examples are uint8 \(1, 7, 5\)"):
        load(tmp_path)


def test_a_truncated_image_is_named(tmp_path: Path) -> None:
    write(tmp_path, shape=(40, 40))
    path = tmp_path / "cow" / "1.png"
    for part in (path.read_bytes()[:-400], b"", b"no image"):
        path.write_bytes(part)
        with pytest.raises(AttarError, match=r"cow/1\.png is not a complete image"):
            load(tmp_path)


def test_sixteen_bit_images_are_refused(tmp_path: Path) -> None:
    write(tmp_path)
    Image.fromarray(np.full((6, 5), 40000, np.uint16)).save(tmp_path / "ant" / "0.png")
    with pytest.raises(AttarError, match=r"ant/0\.png is an image of mode .* 8-bit gray or RGB"):
        load(tmp_path)


def test_a_folder_of_something_else_says_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing here")
    with pytest.raises(AttarError, match="give a folder of PNG or JPEG images for each class"):
        load(tmp_path)


def test_a_test_class_that_train_lacks_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "train")
    write(tmp_path / "test")
    (tmp_path / "test" / "ant").rename(tmp_path / "test" / "dog")
    with pytest.raises(AttarError, match="class 'dog', which train lacks"):
        load(tmp_path)


def test_one_class_alone_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "all")
    (tmp_path / "one").mkdir()
    (tmp_path / "all" / "ant").rename(tmp_path / "one" / "ant")
    with pytest.raises(AttarError, match="only one class, 'ant'"):
        load(tmp_path / "one")
