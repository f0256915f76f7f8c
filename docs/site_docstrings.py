"""Docstrings of the library as Markdown, for mkdocstrings: mathematics, and what fields say about themselves."""

from __future__ import annotations

from typing import Any

import griffe
from docstrings import markdown


class Docstrings(griffe.Extension):
    """Rewrite mathematics, and give attributes the description of their ``Field`` or their ``#:`` comment."""

    def on_object(self, *, obj: griffe.Object, **more: Any) -> None:
        """Called for every module, class, function and attribute."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)
        elif isinstance(obj, griffe.Attribute) and (said := described(obj)):
            obj.docstring = griffe.Docstring(said, parent=obj, lineno=obj.lineno)


def described(field: griffe.Attribute) -> str:
    """The description of a pydantic ``Field``, or the comment after ``#:``."""
    if isinstance(field.value, griffe.ExprCall):
        for word in field.value.arguments:
            if isinstance(word, griffe.ExprKeyword) and word.name == "description":
                return str(word.value).strip("'\"")
    if field.lineno is None or field.endlineno is None:
        return ""
    lines = field.lines_collection[field.filepath][field.lineno - 1 : field.endlineno]
    return next((line.partition("#: ")[2].strip() for line in lines if "#: " in line), "")
