"""Mathematics as MathML, which browsers draw without a script: GitHub's dollar-and-backtick form and math blocks."""

from __future__ import annotations

import re
from typing import Any
from xml.etree.ElementTree import Element

from latex2mathml.converter import convert
from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor


def mathml(source: str, display: str = "inline") -> str:
    """A formula as MathML, with other words for what the converter does not know: larger double bars, and arg."""
    known = re.sub(r"\\[bB]igg?[lr]?\\\|", r"\\|", source)
    return convert(re.sub(r"\\arg\b", r"\\operatorname{arg}", known), display=display)


def fence(source: str, language: str, css_class: str, options: dict[str, Any], md: Markdown, **more: Any) -> str:
    """A math block, as a custom fence of superfences."""
    return f'<div class="{css_class}">{mathml(source, "block")}</div>'


class _Inline(InlineProcessor):
    def handleMatch(self, m: Any, data: str) -> tuple[Element | str, int, int]:  # noqa: N802
        return self.md.htmlStash.store(mathml(m.group(1))), m.start(0), m.end(0)


class Mathematics(Extension):
    """Inline formulas between dollar signs and backticks."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.inlinePatterns.register(_Inline(r"\$`([^`]+)`\$", md), "mathematics", 200)  # before code between backticks


def makeExtension(**options: Any) -> Mathematics:  # noqa: N802
    """What Markdown calls to load this file as an extension."""
    return Mathematics(**options)
