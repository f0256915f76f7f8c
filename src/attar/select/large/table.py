"""Which data is a table that is read in parts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attar.core.errors import AttarError
from attar.data.load import is_known
from attar.data.parts import InParts
from attar.data.parts.files import is_pattern, is_remote


def table_of(
    data: Any, features: str | Sequence[str] | None = None, label: str | None = None, id: str | None = None
) -> InParts | None:
    """The table that is read in parts; None if this is data that is loaded as a whole.

    A table has ``features``, or is a pattern, a URL, or a file in Arrow or .npy.
    """
    if isinstance(data, InParts):
        if features is not None or label is not None or id is not None:
            raise AttarError("InParts have their own features, label and id: leave them out.")
        return data
    named = isinstance(data, str | Path) and not is_known(str(data)) and _is_table(str(data))
    if features is not None or named:
        return InParts(data, features, label, id)
    if label is not None or id is not None:
        raise AttarError("label and id name columns of a table that is read in parts: name its features, too.")
    return None


def _is_table(source: str) -> bool:
    there = not Path(source).expanduser().exists()
    return is_remote(source) or source.endswith((".npy", ".arrow")) or (there and is_pattern(source))
