"""The page of an application: class-incremental learning or architecture search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from attar.core.files import write_text
from attar.report import svg, words
from attar.report.blocks import Block
from attar.report.embed import policy, resource
from attar.report.page import environment


def write_page(
    path: Path,
    headline: str,
    summary: str,
    blocks: Sequence[Block],
    command: str,
    facts: Mapping[str, Mapping[str, Any]],
) -> Path:
    """Write one self-contained HTML file; returns ``path``.

    Args:
        path: The file.
        headline: The title.
        summary: What was found, in a few sentences.
        blocks: The sections.
        command: The command that repeats it.
        facts: Settings and facts, by heading.
    """
    shown = [(name, words.flat(values)) for name, values in facts.items() if values]
    css = Markup(svg.style() + resource("page.css"))
    page = environment().get_template("application.html.j2")
    write_text(
        path,
        page.render(
            css=css, policy=policy(""), headline=headline, summary=summary, blocks=blocks, command=command, facts=shown
        ),
    )
    return path
