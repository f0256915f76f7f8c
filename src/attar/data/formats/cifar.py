"""The binary version of CIFAR-10 and CIFAR-100: records of label bytes and 3×32×32 pixels."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from attar.core.errors import AttarError
from attar.data.formats.find import find, found
from attar.data.raw import RawSplit, join, pack

CIFAR10 = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR100 = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle", "bottle", "bowl", "boy",
    "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar", "cattle", "chair", "chimpanzee", "clock",
    "cloud", "cockroach", "couch", "crab", "crocodile", "cup", "dinosaur", "dolphin", "elephant", "flatfish",
    "forest", "fox", "girl", "hamster", "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion",
    "lizard", "lobster", "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom", "oak_tree", "orange",
    "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy", "porcupine",
    "possum", "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal", "shark", "shrew", "skunk",
    "skyscraper", "snail", "snake", "spider", "squirrel", "streetcar", "sunflower", "sweet_pepper", "table", "tank",
    "telephone", "television", "tiger", "tractor", "train", "trout", "tulip", "turtle", "wardrobe", "whale",
    "willow_tree", "wolf", "woman", "worm",
)  # fmt: skip
PIXELS = 3 * 32 * 32


def read_cifar10(folder: Path) -> RawSplit:
    """Five training batches and one test batch; one label byte."""
    _refuse_pickles(folder, "cifar-10-batches-py", "data_batch_1", "cifar-10-binary.tar.gz")
    inside = "cifar-10-batches-bin"
    train = [found(folder, f"{inside}/data_batch_{i}.bin") for i in range(1, 6)]
    return _join(train, found(folder, f"{inside}/test_batch.bin"), 1, CIFAR10)


def read_cifar100(folder: Path) -> RawSplit:
    """One training and one test file; a coarse label byte, which is ignored, and a fine one."""
    _refuse_pickles(folder, "cifar-100-python", "train", "cifar-100-binary.tar.gz")
    train, test = (found(folder, f"cifar-100-binary/{part}.bin") for part in ("train", "test"))
    return _join([train], test, 2, CIFAR100)


def _join(train: Iterable[Path], test: Path, labels: int, classes: tuple[str, ...]) -> RawSplit:
    return join(_records(train, labels, classes), _records([test], labels, classes), str(test.parent))


def _records(paths: Iterable[Path], labels: int, classes: tuple[str, ...]) -> RawSplit:
    paths = list(paths)
    records = np.concatenate([_one(path, labels) for path in paths])
    x = records[:, labels:].reshape(-1, 3, 32, 32)
    return pack(np.ascontiguousarray(x), records[:, labels - 1], str(paths[0]), classes)


def _one(path: Path, labels: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    size = path.stat().st_size
    if size == 0 or size % (labels + PIXELS):
        raise AttarError(
            f"{path} has {size} bytes, not a multiple of the record size {labels + PIXELS}: it is truncated or has "
            "extra bytes, so download it again."
        )
    return np.fromfile(path, dtype=np.uint8).reshape(-1, labels + PIXELS)


def _refuse_pickles(folder: Path, inside: str, file: str, binary: str) -> None:
    if find(folder, f"{inside}/{file}") is not None and find(folder, f"{file}.bin") is None:
        raise AttarError(
            f"{folder} holds the Python version of CIFAR, pickles that could run any code: replace it by the "
            f"binary version, {binary} from https://www.cs.toronto.edu/~kriz/cifar.html."
        )
