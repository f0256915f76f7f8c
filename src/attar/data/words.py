"""Words of texts."""

from __future__ import annotations

import re

WORD = re.compile(r"\w+|[^\w\s]")


def words(text: str) -> list[str]:
    """Lower-case words and punctuation marks."""
    return WORD.findall(text.lower())
