"""The names, files and folders that ``load`` knows, and who reads them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from attar.data.formats import (
    cifar,
    digits,
    folder,
    hf,
    idx,
    imdb,
    lines,
    npz,
    parquet,
    safetensors_,
    svhn,
    table,
    tiny_imagenet,
)
from attar.data.raw import RawSplit

EMBEDDED, HUB = "digits", "hf:"

NAMES: dict[str, Callable[[Path], RawSplit]] = {
    "mnist": partial(idx.read, classes=digits.DIGITS),
    "fashion-mnist": partial(idx.read, classes=idx.FASHION),
    "kmnist": partial(idx.read, classes=idx.KUZUSHIJI),
    "emnist": idx.read_emnist,
    "cifar10": cifar.read_cifar10,
    "cifar100": cifar.read_cifar100,
    "svhn": svhn.read,
    "kuzushiji49": npz.read_kuzushiji49,
    "tiny-imagenet": tiny_imagenet.read,
    "imdb": imdb.read,
    "trec6": partial(lines.read_trec, target="coarse"),
    "trec50": partial(lines.read_trec, target="fine"),
    "sst5": lines.read_sst,
}
TEXTS = ("imdb", "trec6", "trec50", "sst5")  #: known data sets of texts
SHARED = {"trec6": "trec", "trec50": "trec"}  #: folders of known data sets with another name
GLOVE = "glove"  #: folder of word vectors for known data sets of texts


class Format(NamedTuple):
    """A reader, and the pattern of file names for which it is used."""

    pattern: str
    read: Callable[..., RawSplit]
    columns: bool = False  #: whether the reader takes the name of the label column


FILES = (
    Format("*.npz", npz.read),
    Format("*.safetensors", safetensors_.read),
    Format("*.csv", table.read_csv, columns=True),
    Format("*.parquet", parquet.read, columns=True),
    Format("*.label", lines.read_trec, columns=True),
    Format("stsa.*", lines.read),
    Format("*.tsv", table.read_tsv, columns=True),
    Format("*.txt", lines.read),
)
FOLDERS = (
    Format("dataset_dict.json", hf.read_folder, columns=True),
    Format("dataset_info.json", hf.read_folder, columns=True),
    Format("emnist-balanced-*", idx.read_emnist),
    Format("gzip/emnist-balanced-*", idx.read_emnist),
    Format("*-images-idx3-ubyte*", idx.read),
    Format("data_batch_*", cifar.read_cifar10),
    Format("cifar-10-batches-*/data_batch_*", cifar.read_cifar10),
    Format("train.bin", cifar.read_cifar100),
    Format("cifar-100-*/train*", cifar.read_cifar100),
    Format("meta", cifar.read_cifar100),  # the Python version, which is refused
    Format("*_32x32.mat", svhn.read),
    Format("k49-*", npz.read_kuzushiji49),
    Format("wnids.txt", tiny_imagenet.read),
    Format("imdb.vocab", imdb.read),
    Format(lines.TREC_TRAIN, lines.read_trec, columns=True),
    Format("stsa.fine.train", lines.read_sst),
    Format("trees/train.txt", lines.read_sst),
    Format("*.parquet", parquet.read_folder, columns=True),
    Format("data/*.parquet", parquet.read_folder, columns=True),
)
CLASSES = Format("*/*", folder.read)  #: any other folder


def format_of(path: Path) -> Format | None:
    """Who reads this file or folder; None if nobody does."""
    if path.is_dir():
        return next((format for format in FOLDERS if any(map(Path.is_file, path.glob(format.pattern)))), CLASSES)
    return next((format for format in FILES if path.match(format.pattern)), None)
