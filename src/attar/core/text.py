"""Text that came from a file, made safe for where it is shown: a page, a chart, a table for spreadsheets."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Sequence

#: Categories of characters that control, reorder or are no characters: in terminals, pages and XML they do harm.
CONTROLS = ("Cc", "Cf", "Cs", "Cn")
KEPT = "\n\t\u200c\u200d"  #: breaks, and the joiners that words of some languages need
FORMULA = ("=", "+", "-", "@", "\t", "\r")  #: how cells begin that spreadsheets run


def visible(text: str) -> str:
    """Text with control and bidirectional characters written as escapes; everything else is unchanged."""
    if text.isprintable():
        return text
    return "".join(c if c in KEPT or unicodedata.category(c) not in CONTROLS else _escape(c) for c in text)


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as comma-separated text; a cell of text that a spreadsheet would run as a formula begins with ``'``."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return text.getvalue()


def _cell(value: object) -> object:
    if not isinstance(value, str):
        return value
    return f"'{visible(value)}" if value.startswith(FORMULA) and not _is_number(value) else visible(value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def duration(seconds: float) -> str:
    """A duration in words."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{round(seconds)} seconds" if seconds >= 1.5 else "a second"
