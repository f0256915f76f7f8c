"""Errors whose message names the remedy."""

from __future__ import annotations

import errno
import importlib
import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from numbers import Integral, Real
from pathlib import Path
from types import ModuleType
from typing import TypeVar

Kind = TypeVar("Kind")
LONGEST = 2000  #: characters of a message; what a file holds may be longer

#: What to do where nothing can be written.
REMEDIES = {
    errno.ENOSPC: "free space on that disk, or choose another place",
    errno.EDQUOT: "your share of that disk is used up, so free space there or choose another place",
    errno.EROFS: "that disk can only be read, so choose another place",
    errno.EACCES: "you may not write there, so choose another place or change the permissions",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EMFILE: "too many files are open, so close some or raise the limit (`ulimit -n`)",
    errno.EPERM: "you may not write there, so choose another place or change the permissions",
}
#: Where a text goes on in another line.
BREAKS = re.compile(r"\s*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*")


class AttarError(ValueError):
    """Bad input, or a run that cannot continue; the message is one sentence that names the remedy."""

    def __str__(self) -> str:
        return one_line(super().__str__())


class MissingFile(AttarError):
    """The file does not exist. Never raised for a file that exists but cannot be opened."""


class DamagedFile(AttarError):
    """A file was read and its content is wrong: truncated, changed, or from another store or version.

    Never raised for a file that could not be read: it may be intact.

    Args:
        path: The file.
        problem: What is wrong with it; continues a sentence that starts with the path.
        remedy: What to do about it.
    """

    def __init__(self, path: str | Path, problem: str, remedy: str) -> None:
        super().__init__(path, problem, remedy)
        self.path, self.problem, self.remedy = Path(path), problem, remedy

    def __str__(self) -> str:
        return one_line(f"{self.path} {self.problem}: {self.remedy}")


def other_format(path: str | Path, header: Mapping[str, str], kind: str, command: str) -> DamagedFile:
    """The error for a file that is no ``kind`` of this version, with the command that makes one."""
    if header.get("format", "").startswith(f"attar-{kind}-"):
        return DamagedFile(path, "was written by another version of Attar", f"make it again with `{command}`.")
    return DamagedFile(path, f"is not a {kind} of this library", f"make one with `{command}`.")


class Diverged(AttarError):
    """An optimisation or a chain diverged to NaN or Inf; the message names a setting to try."""


class MissingExtra(AttarError, ImportError):
    """A feature needs a package that only an extra installs."""


def one_line(text: str) -> str:
    """A message on one line, whatever it quotes; a very long one loses its middle, not its remedy at the end."""
    flat = BREAKS.sub(" ", text)
    return flat if len(flat) <= LONGEST else f"{flat[: LONGEST // 2]} ... {flat[-LONGEST // 2 :]}"


def unknown(kind: str, name: str, known: Iterable[str], otherwise: str | None = None) -> AttarError:
    """The error for an unknown name.

    Args:
        kind: What the name should be one of.
        name: What was given.
        known: The names that exist; the most similar one is suggested.
        otherwise: The remedy if no name is similar; by default the list of all names.
    """
    choices = sorted(known)
    near = get_close_matches(str(name).lower(), choices, n=1, cutoff=0.65)
    hint = f"did you mean {near[0]!r}?" if near else otherwise or f"choose from {', '.join(choices)}."
    return AttarError(f"Unknown {kind} {name!r}: {hint}")


def whole(name: str, value: object, least: int = 0) -> int:
    """``value`` as an int if it is a whole number of at least ``least``, of Python or numpy."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise AttarError(f"{name} must be a whole number, got {value!r}.")
    if int(value) < least:
        raise AttarError(f"{name} must be at least {least}, got {value}.")
    return int(value)


def number(name: str, value: object) -> float:
    """``value`` as a float if it is a number, of Python or numpy."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise AttarError(f"{name} must be a number, got {value!r}.")
    return float(value)


def instance(name: str, value: Kind, *kinds: type) -> Kind:
    """``value`` if it is of one of these kinds."""
    if not isinstance(value, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds if kind is not type(None))
        raise AttarError(f"{name} must be of type {wanted}, got {type(value).__name__}.")
    return value


def require(module: str, extra: str) -> ModuleType:
    """Import an optional package, or raise an error that names the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtra(f"This needs the package {package}: run pip install 'attar[{extra}]'.") from error
