"""A page made from hostile files must still be a page: nothing of theirs becomes markup, and its charts are XML."""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from html.parser import HTMLParser
from xml.etree import ElementTree

from attar.core.text import KEPT

#: What a page may hold of each: one script, ours, and no form, frame or event of anybody.
FORBIDDEN = {"iframe", "object", "embed", "form", "base"}

OWN = re.compile(r"#|data:image/png;base64,|data:,$")  #: links and sources that a page may have


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what files of users must not bring in."""
        self.scripts += tag == "script"
        if tag in FORBIDDEN:
            self.found.append(f"<{tag}>")
        for name, value in attrs:
            if name.startswith("on"):
                self.found.append(f"{tag} {name}")
            if name in ("src", "href", "xlink:href") and not OWN.match(value or ""):
                self.found.append(f"{tag} {name}={value!r}")


def require_sound(text: str, scripts: int | None = None) -> None:
    """Raise AssertionError if a page holds foreign markup, control characters, or charts that are not XML."""
    page = _Page()
    page.feed(text)
    assert not page.found, f"foreign markup: {page.found[:5]}"
    assert scripts is None or page.scripts == scripts, f"{page.scripts} scripts"
    strange = [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Cn") and c not in KEPT]
    assert not strange, f"control characters {strange[:5]!r}"
    for chart in re.findall(r"<svg\b.*?</svg>", text, re.DOTALL):
        ElementTree.fromstring(chart)


def require_no_formula(table: str) -> None:
    """Raise AssertionError if a spreadsheet would take a cell of this CSV file for a formula."""
    for row in csv.reader(io.StringIO(table)):
        for cell in row:
            try:
                float(cell)
            except ValueError:
                assert not cell.startswith(("=", "+", "-", "@", "\t", "\r")), f"formula {cell[:40]!r}"
