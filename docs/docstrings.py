"""Docstrings as Markdown."""

from __future__ import annotations

import inspect
import re


def markdown(docstring: str) -> str:
    """A docstring as Markdown, with mathematics for GitHub and for this site."""
    text = inspect.cleandoc(docstring)
    text = re.sub(r"``([^`]+)``", r"`\1`", re.sub(r":math:`([^`]+)`", r"$`\1`$", text))
    return re.sub(r"\.\. math:: (.+?)(?=\n\n|\Z)", _equation, text, flags=re.DOTALL)


def _equation(found: re.Match[str]) -> str:
    lines = inspect.cleandoc(found[1])
    aligned = f"\\begin{{aligned}}\n{lines}\n\\end{{aligned}}" if "&" in lines else lines
    return f"```math\n{aligned}\n```"
