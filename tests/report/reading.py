"""Read a page as a person does."""

from __future__ import annotations

import re
from html import unescape

EVIL = "<script>alert(1)</script>"


def text(page: str) -> str:
    """What a person reads: no style, no tags, plain spaces."""
    bare = re.sub(r"<style>.*?</style>|<title>.*?</title>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", bare)).split())


def section(page: str, name: str) -> str:
    return page.partition(f'id="{name}"')[2].partition("</section>")[0]
