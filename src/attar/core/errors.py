"""What goes wrong, in words that name the remedy."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType


class AttarError(ValueError):
    """Bad input or a run that cannot go on; the message is one sentence that names the remedy."""


class MissingFile(AttarError):
    """There is no file of this name. A file that is there and cannot be opened is never reported as this."""


class DamagedFile(AttarError):
    """A file was read and its content is not what it must be: cut off, changed, or of another store or version.

    A file that could not be read is never reported as this: it may be whole.

    Args:
        path: The file.
        problem: What is wrong with it; continues a sentence that starts with the path.
        remedy: What to do about it.
    """

    def __init__(self, path: str | Path, problem: str, remedy: str) -> None:
        super().__init__(path, problem, remedy)
        self.path, self.problem, self.remedy = Path(path), problem, remedy

    def __str__(self) -> str:
        return f"{self.path} {self.problem}: {self.remedy}"


class Diverged(AttarError):
    """An optimisation or a chain left the finite numbers; the message names a setting to try."""


class MissingExtra(AttarError, ImportError):
    """A feature needs a package that only an extra installs."""


def unknown(kind: str, name: str, known: Iterable[str], otherwise: str | None = None) -> AttarError:
    """The error for a name nobody registered.

    Args:
        kind: What the name should be one of.
        name: What was given.
        known: The names that exist; one that is spelt nearly the same is suggested.
        otherwise: What to do where none is; to choose from all of them if not set.
    """
    choices = sorted(known)
    near = get_close_matches(name.lower(), choices, n=1, cutoff=0.65)
    hint = f"did you mean {near[0]!r}?" if near else otherwise or f"choose from {', '.join(choices)}."
    return AttarError(f"Unknown {kind} {name!r}: {hint}")


def require(module: str, extra: str) -> ModuleType:
    """Import an optional package, or say which extra brings it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise MissingExtra(f"This needs the package {package}: run pip install 'attar[{extra}]'.") from error
