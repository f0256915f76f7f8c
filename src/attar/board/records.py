"""JSON files with a checksum: what was changed by hand, or by another version, is told apart from what was judged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from attar.core.errors import DamagedFile
from attar.core.files import read_json, write_json

CHECKSUM = "checksum"

Record = TypeVar("Record")


class Kind(NamedTuple):
    """A kind of file of the board."""

    name: str  #: within a sentence
    format: str  #: what its files say that they are
    again: str  #: how to make one again; ends a sentence


def digest(values: Mapping[str, Any]) -> str:
    """The checksum of JSON values, whatever the order of their keys."""
    text = json.dumps({name: value for name, value in values.items() if name != CHECKSUM}, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def plain(adapter: TypeAdapter[Record], record: Record) -> dict[str, Any]:
    """A record as JSON values, with its checksum."""
    values: dict[str, Any] = json.loads(json.dumps(adapter.dump_python(record, mode="json"), allow_nan=False))
    return {**values, CHECKSUM: digest(values)}


def write_record(path: Path, adapter: TypeAdapter[Record], record: Record) -> None:
    """Write one file; an existing one is replaced only by a complete new one."""
    write_json(path, plain(adapter, record))


def read_record(path: Path, adapter: TypeAdapter[Record], kind: Kind) -> Record:
    """The record in a file, if it is of this version and as it was written."""
    values = read_json(path)
    told = values.get("format") if isinstance(values, dict) else None
    if told != kind.format:
        problem = f"is no {kind.name} of this version of Attar (its format is {told!r}, not {kind.format!r})"
        raise DamagedFile(path, problem, kind.again)
    if values.pop(CHECKSUM, None) != digest(values):
        raise DamagedFile(path, "was changed after it was written", f"restore it, or {kind.again}")
    try:
        return adapter.validate_python(values)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise DamagedFile(path, f"is no {kind.name} ({where}: {first['msg']})", kind.again) from error
