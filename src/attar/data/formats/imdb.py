"""Large Movie Review Dataset (Maas et al., ACL 2011): reviews by class, in the official archive or unpacked."""

from __future__ import annotations

import gzip
import re
import tarfile
from pathlib import Path

import numpy as np

from attar.core import budget
from attar.core.errors import AttarError
from attar.core.files import require_read
from attar.data.formats import folder as folders
from attar.data.raw import DAMAGED_ARCHIVE, RawSplit, join, pack

ARCHIVE = "aclImdb_v1.tar.gz"
CLASSES = ("neg", "pos")  #: the third folder, unsup, has no labels
REVIEW = re.compile(r"aclImdb/(train|test)/(neg|pos)/([^/]+\.txt)")
BREAK = "<br />"  #: between paragraphs


class _Bounded(gzip.GzipFile):
    """Unpacked bytes, of which no more are read at once than fit: a header of an archive may say any size."""

    def read(self, size: int | None = -1) -> bytes:
        """At most ``size`` bytes."""
        budget.claim(0, str(self.name), passing=max(0, size or 0))
        return super().read(size)


def read(folder: Path) -> RawSplit:
    """``train`` and ``test`` with the folders ``neg`` and ``pos``, unpacked or in the archive."""
    inside = next((place for place in (folder / "aclImdb", folder) if (place / "train").is_dir()), None)
    if inside is None:
        train, test = _archive(folder / ARCHIVE)
    else:
        train, test = (folders.texts(inside / part, CLASSES) for part in ("train", "test"))
    return join(_clean(train), _clean(test), str(folder))


def _archive(path: Path) -> tuple[RawSplit, RawSplit]:
    """Both sets, in the order of the unpacked folder; nothing is written."""
    found: dict[str, list[tuple[str, str, str]]] = {"train": [], "test": []}
    try:
        with _Bounded(path) as packed, tarfile.open(fileobj=packed, mode="r:") as tar:
            for member in tar:
                match = REVIEW.fullmatch(member.name)
                if match and (file := tar.extractfile(member)) is not None:
                    part, label, name = match.groups()
                    budget.claim(2 * member.size + 200, str(path))
                    found[part].append((label, name, file.read().decode()))
    except AttarError:
        raise
    except DAMAGED_ARCHIVE as error:
        require_read(path, error)
        raise AttarError(f"{path} is not a complete archive of reviews ({error}): download it again.") from error
    train, test = (_packed(sorted(found[part]), path) for part in ("train", "test"))
    return train, test


def _packed(reviews: list[tuple[str, str, str]], path: Path) -> RawSplit:
    labels = np.array([CLASSES.index(label) for label, _, _ in reviews], dtype=np.int64)
    texts = np.array([text for _, _, text in reviews], dtype=object)
    return pack(texts, labels, str(path), CLASSES, keys=[f"{label}/{name}" for label, name, _ in reviews])


def _clean(part: RawSplit) -> RawSplit:
    texts = np.array([text.replace(BREAK, " ") for text in part.train.x], dtype=object)
    return part._replace(train=part.train._replace(x=texts))
