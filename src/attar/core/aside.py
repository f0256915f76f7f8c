"""What a file cost to make, in a small file beside it: runs cost never the same, and equal results are equal bytes."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from attar.core.cost import Cost
from attar.core.errors import DamagedFile, MissingFile
from attar.core.files import read_json, write_json

SUFFIX = ".cost"


def write_cost(path: str | Path, of: str, cost: Cost) -> None:
    """Write the cost of the file at ``path``, whose content has the checksum ``of``."""
    write_json(_beside(path), {"of": of, **asdict(cost)})


def read_cost(path: str | Path, of: str) -> Cost | None:
    """The cost of the file at ``path``; None if there is none of this content, or it is unreadable."""
    try:
        about = read_json(_beside(path))
        return TypeAdapter(Cost).validate_python(about) if about.pop("of") == of else None
    except (MissingFile, DamagedFile, ValidationError, AttributeError, KeyError, TypeError):
        return None


def _beside(path: str | Path) -> Path:
    return Path(path).with_name(Path(path).name + SUFFIX)
