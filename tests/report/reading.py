"""Read a page as a person does."""

from __future__ import annotations

import re
from html import unescape

EVIL = "<script>alert(1)</script>"


def text(page: str) -> str:
    """What a person reads: no style, no script, no tags, plain spaces."""
    bare = re.sub(r"<(style|script|title)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", bare)).split())


def scripts(page: str) -> list[str]:
    """What a browser would run."""
    return re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)


def section(page: str, name: str) -> str:
    return page.partition(f'id="{name}"')[2].partition("</section>")[0]
