"""The files behind a path, a pattern or a URL, and how each is opened."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attar.core.errors import AttarError, require
from attar.data.formats import hf

KINDS = (".parquet", ".arrow", ".npy")  #: files that are read in pieces
REMOTE = "://"
HERE = "file://"


def is_remote(source: str) -> bool:
    """Whether this is a URL."""
    return REMOTE in source


def is_pattern(source: str) -> bool:
    """Whether this names files by a pattern, such as ``folder/*.parquet``."""
    return any(sign in source for sign in "*?[")


def find(source: str | Path) -> list[str]:
    """All files of a path, a folder, a pattern or a URL, sorted by name; all of one kind.

    A folder of Hugging Face's ``save_to_disk`` gives the Arrow files of its training set.
    """
    text = str(source).removeprefix(HERE)
    found = _remote(text) if is_remote(text) else _local(text)
    endings = sorted({Path(path).suffix for path in found})
    if not found:
        raise AttarError(f"No file matches {text}: check the path; files end in {', '.join(KINDS)}.")
    if len(endings) > 1 or endings[0] not in KINDS:
        shown = " and ".join(ending or "no ending" for ending in endings)
        raise AttarError(f"{text} has files of {shown}: give files of one kind, {', '.join(KINDS)}.")
    return found


def stamp(path: str) -> str:
    """Size and time of the last change of a file, by which a changed file is known."""
    if is_remote(path):
        with reached(path):
            system, place = require("fsspec", "remote").core.url_to_fs(path)
            return f"{path} {system.ukey(place)}"
    try:
        about = Path(path).stat()
    except OSError as error:
        raise AttarError(f"{path} cannot be read ({error.strerror}): check the path.") from error
    return f"{path} {about.st_size} {about.st_mtime_ns}"


@contextmanager
def opened(path: str) -> Iterator[Any]:
    """A file as Arrow reads it: the path of a local one, else an open file."""
    if not is_remote(path):
        yield path
        return
    with reached(path), require("fsspec", "remote").open(path, "rb") as file:
        yield file


@contextmanager
def reached(path: str) -> Iterator[None]:
    """Errors of file systems elsewhere, as one sentence."""
    try:
        yield
    except AttarError:
        raise
    except ImportError as error:
        raise AttarError(f"{path} needs another package ({error}): install it.") from error
    except Exception as error:  # each file system has errors of its own
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise AttarError(
            f"{path} cannot be read ({reason}): check the address and the network, then run again."
        ) from error


def _local(text: str) -> list[str]:
    path = Path(text).expanduser()
    if is_pattern(text) and not path.exists():
        root, pattern = _cut(path)
        return sorted(str(found) for found in root.glob(pattern) if found.is_file())
    if not path.is_dir():
        return [str(path)] if path.is_file() else []
    if any((path / name).is_file() for name in ("dataset_dict.json", "dataset_info.json")):
        return [str(file) for file in hf.files(path / "train" if (path / "dataset_dict.json").is_file() else path)]
    return sorted(str(file) for file in path.iterdir() if file.suffix in KINDS)


def _cut(path: Path) -> tuple[Path, str]:
    """The folder before the first name with a pattern, and the rest."""
    before = next(k for k, name in enumerate(path.parts) if is_pattern(name))
    return Path(*path.parts[:before]), str(Path(*path.parts[before:]))


def _remote(text: str) -> list[str]:
    fsspec = require("fsspec", "remote")
    with reached(text):
        system, place = fsspec.core.url_to_fs(text)
        if is_pattern(place):
            found = system.glob(place)
        elif Path(place).suffix not in KINDS and system.isdir(place):
            found = [name for name in system.ls(place, detail=False) if Path(name).suffix in KINDS]
        else:
            found = [place] if system.exists(place) else []
        return sorted(str(system.unstrip_protocol(name)) for name in found)
