"""Text files with one labelled sentence on every line: questions of TREC and sentences of SST."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from attar.core import budget
from attar.core.errors import AttarError, unknown
from attar.core.files import read_bytes
from attar.data.formats.find import find, found
from attar.data.raw import RawSplit, join, pack

TREC_TRAIN, TREC_TEST = "train_5500.label", "TREC_10.label"
TASKS = ("coarse", "fine")  #: the two classifications of TREC: 6 and 50 classes
#: The one place of the official files that is not UTF-8; a space is meant.
BROKEN, MENDED = b"sister\xf0city", b"sister city"

SENTIMENTS = ("very negative", "negative", "neutral", "positive", "very positive")
SST = (("stsa.fine.train", "stsa.fine.dev", "stsa.fine.test"), ("trees/train.txt", "trees/dev.txt", "trees/test.txt"))
BRACKETS = {"-LRB-": "(", "-RRB-": ")"}  #: as trees write them
TREE = re.compile(r"\((\w+) .*\)")
LEAF = re.compile(r"\(\w+ ([^()]+)\)")
TEXT = 4  #: bytes of memory per byte of a text file: its content, decoded, and cut into lines
LINE = 200  #: bytes of the objects for one line
PLAIN = re.compile(r"([^\t]+)\t(.*)|(\d+) (.*)")


def text_of(path: Path) -> str:
    """The content of a text file, which must be UTF-8."""
    try:
        return read_bytes(path, TEXT).replace(BROKEN, MENDED).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise AttarError(f"Line {line} of {path} is not text in UTF-8: save the file in UTF-8.") from error


def read_trec(path: Path, target: str | None = None) -> RawSplit:
    """``COARSE:fine question`` on every line: one file, or a folder with the two official ones.

    Args:
        path: The file or folder.
        target: The classes: ``coarse`` (the default) or ``fine``.
    """
    if target is not None and target not in TASKS:
        raise unknown("target of TREC", target, TASKS)
    if path.is_file():
        return _trec(path, target == "fine")
    train, test = _trec(found(path, TREC_TRAIN), target == "fine"), find(path, TREC_TEST)
    return train if test is None else join(train, _trec(test, target == "fine"), str(path))


def read_sst(folder: Path) -> RawSplit:
    """Train, validation and test sentences of SST with five classes, as ``label sentence`` or as trees."""
    names = next((names for names in SST if find(folder, names[0])), SST[0])
    train, val, test = (_five(read(found(folder, name))) for name in names)
    return join(join(train, test, str(folder)), val, str(folder), "validation")


def read(path: Path) -> RawSplit:
    """A sentence on every line: after its label and a tab, after a number and a space, or as a tree of SST."""
    pairs = [_tree(line, where) if line.startswith("(") else _plain(line, where) for line, where in _lines(path)]
    return _packed(pairs, path)


def _five(read: RawSplit) -> RawSplit:
    """The labels 0..4 by their names."""
    if not set(read.classes) <= set("01234"):
        raise AttarError(f"SST has the labels 0..4, got {', '.join(read.classes)}: put the official files there.")
    labels = np.array([int(name) for name in read.classes])[read.train.y]
    return read._replace(train=read.train._replace(y=labels), classes=SENTIMENTS)


def _trec(path: Path, fine: bool) -> RawSplit:
    pairs = []
    for line, where in _lines(path):
        label, _, question = line.partition(" ")
        coarse, _, kind = label.partition(":")
        if not (coarse and kind and question.strip()):
            raise AttarError(f"{where} is not COARSE:fine and a question: correct that line.")
        pairs.append((label if fine else coarse, question))
    return _packed(pairs, path)


def _tree(line: str, where: str) -> tuple[str, str]:
    """Label of the root and leaves of ``(3 (2 It) (4 works))``."""
    root, leaves = TREE.fullmatch(line), LEAF.findall(line)
    if root is None or not leaves or line.count("(") != line.count(")"):
        raise AttarError(f"{where} is not a complete tree: correct that line.")
    return root[1], " ".join(BRACKETS.get(word, word) for word in leaves)


def _plain(line: str, where: str) -> tuple[str, str]:
    parts = PLAIN.fullmatch(line)
    if parts is None:
        raise AttarError(f"{where} has no label: write the label, a tab and the sentence.")
    label, sentence = (part for part in parts.groups() if part is not None)
    if not sentence.strip():
        raise AttarError(f"{where} has a label and no sentence: fill it in or delete that line.")
    return label.strip(), sentence


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    """Every line that is not blank, and where it is, for an error."""
    for number, line in enumerate(text_of(path).split("\n"), 1):
        if line.strip():
            budget.claim(LINE, str(path))
            yield line.rstrip("\r"), f"Line {number} of {path}"


def _packed(pairs: Sequence[tuple[str, str]], path: Path) -> RawSplit:
    labels, texts = [label for label, _ in pairs], [text.strip() for _, text in pairs]
    return pack(np.array(texts, dtype=object), np.array(labels, dtype=str), str(path))
