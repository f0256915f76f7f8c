"""Examples in words: texts as they read, rows of tables with the values of their columns."""

from __future__ import annotations

from attar.data import Data, Tokens
from attar.data.spec import Vector
from attar.report.embed import cut

COLUMNS = 8  #: of a table, told of one example in a line


def in_words(data: Data) -> list[str] | None:
    """What every example says, for texts and tables; None for anything else."""
    element = data.spec.element
    if isinstance(element, Tokens):
        return cut([element.text(tokens) for tokens in data.spec.stored(data.x).tolist()])
    if (columns := values(data)) is None:
        return None
    names, more = list(columns)[:COLUMNS], ", …" if len(columns) > COLUMNS else ""
    told = [[f"{name} {columns[name][i]}" for name in names] for i in range(len(data))]
    return cut([", ".join(line) + more for line in told], 240)


def values(data: Data) -> dict[str, list[str]] | None:
    """The values of every column as text, for rows of tables; None for anything else. A missing value is a dash."""
    element = data.spec.element
    if not isinstance(element, Vector):
        return None
    return {
        name: [_value(value) for value in column] for name, column in element.decode(data.spec.stored(data.x)).items()
    }


def _value(value: object) -> str:
    return "–" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def named(data: Data, i: int, otherwise: str) -> str:
    """The user's name or row number of an example, else its position."""
    if data.rows is None:
        return f"{otherwise} {i:,}"
    row = int(data.rows[i])
    return f"row {row}" if data.keys is None else str(data.keys[row])
