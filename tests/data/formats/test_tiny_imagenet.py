"""Tiny ImageNet in small files of the official layout."""

import zipfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from attar.core.errors import AttarError
from attar.data.load import load

IDS = ("n02124075", "n01443537", "n03444034")


def tiny(folder: Path) -> Path:
    """Images of one gray per class, which survive JPEG."""
    for c, key in enumerate(IDS):
        (folder / "train" / key / "images").mkdir(parents=True)
        (folder / "train" / key / f"{key}_boxes.txt").write_text("")
        for k in range(6):
            image = np.full((8, 8, 3), 80 * c + k, np.uint8)
            Image.fromarray(image).save(folder / "train" / key / "images" / f"{key}_{k}.JPEG", quality=95)
    (folder / "val" / "images").mkdir(parents=True)
    for k in range(4):
        image = np.full((8, 8) if k == 0 else (8, 8, 3), 80 * (k % 3), np.uint8)  # some are gray
        Image.fromarray(image).save(folder / "val" / "images" / f"val_{k}.JPEG")
    lines = [f"val_{k}.JPEG\t{IDS[k % 3]}\t0\t0\t7\t7\n" for k in range(4)]
    (folder / "val" / "val_annotations.txt").write_text("".join(lines))
    (folder / "test" / "images").mkdir(parents=True)
    (folder / "test" / "images" / "test_0.JPEG").write_bytes(b"is not read")
    (folder / "wnids.txt").write_text("\n".join(IDS) + "\n")
    words = ["n02124075\tEgyptian cat", "n01443537\tgoldfish, Carassius auratus", "n03444034\tgo-kart", "n1\tother"]
    (folder / "words.txt").write_text("\n".join(words) + "\n")
    return folder


def test_tiny_imagenet_is_read_unpacked_and_from_its_archive_alike(tmp_path: Path) -> None:
    inside = tiny(tmp_path / "one" / "tiny-imagenet" / "tiny-imagenet-200")
    (tmp_path / "two" / "tiny-imagenet").mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "two" / "tiny-imagenet" / "tiny-imagenet-200.zip", "w") as packed:
        for path in inside.rglob("*"):
            packed.write(path, Path("tiny-imagenet-200") / path.relative_to(inside))
    with pytest.warns(UserWarning, match="1 of 4 images are gray"):
        unpacked, packed_ = (
            load("tiny-imagenet", root=tmp_path / place, download=False, scaling="none") for place in ("one", "two")
        )
    with pytest.warns(UserWarning, match="1 of 4 images are gray"):
        again = load(inside, scaling="none")
    assert unpacked.spec.target.names == ("Egyptian cat", "goldfish", "go-kart")
    assert unpacked.shape == (3, 8, 8)
    assert (len(unpacked.train) + len(unpacked.val), len(unpacked.test)) == (18, 4)
    assert unpacked.test.y.tolist() == [0, 1, 2, 0]
    assert ((unpacked.train.x[:, 0, 0, 0] * 255 // 75).long() == unpacked.train.y).all()
    assert unpacked.train.fingerprint == packed_.train.fingerprint
    assert unpacked.test.names == packed_.test.names == [f"val/images/val_{k}.JPEG" for k in range(4)]
    assert again.train.fingerprint == unpacked.train.fingerprint


def test_tiny_imagenet_with_a_missing_file_or_a_wrong_class_is_refused(tmp_path: Path) -> None:
    folder = tiny(tmp_path / "tiny-imagenet")
    image = folder / "val" / "images" / "val_3.JPEG"
    image.unlink()
    with pytest.raises(AttarError, match=r"no file val/images/val_3\.JPEG in .*: put the official tiny-"):
        load("tiny-imagenet", root=tmp_path)
    (folder / "val" / "val_annotations.txt").write_text("val_0.JPEG\tn9\t0\t0\t7\t7\n")
    with pytest.raises(AttarError, match=r"val_0\.JPEG of .* has class n9, which wnids\.txt lacks"):
        load(folder)


def test_a_damaged_archive_of_images_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tiny-imagenet").mkdir()
    (tmp_path / "tiny-imagenet" / "tiny-imagenet-200.zip").write_bytes(b"PK no archive")
    with pytest.raises(AttarError, match=r"tiny-imagenet-200\.zip is not a complete archive .*: download it again"):
        load("tiny-imagenet", root=tmp_path)
