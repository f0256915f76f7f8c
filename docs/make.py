"""Generate the parts of the documentation that come from code and results.

``python docs/make.py`` writes docs/methods.md, docs/cli.md and the marked parts of other pages; ``--check`` writes
nothing and fails if something is out of date; ``--picture`` also makes docs/report.png, which needs chromium.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from pathlib import Path

for _name in ("FORCE_COLOR", "GITHUB_ACTIONS", "PY_COLORS", "TERMINAL_WIDTH"):
    os.environ.pop(_name, None)
os.environ |= {"COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}  # before typer is imported, which reads them once

import board_tables  # noqa: E402
import condensation_tables  # noqa: E402
import learning_tables  # noqa: E402
import paper_tables  # noqa: E402
import peer_tables  # noqa: E402
import scaling_tables  # noqa: E402
import selection_tables  # noqa: E402
import tuning_tables  # noqa: E402
from docstrings import markdown  # noqa: E402
from tables import RESULTS, TABLES, table  # noqa: E402

from attar.cli import build  # noqa: E402
from attar.cli.options import describe  # noqa: E402
from attar.condense.contract import Descent  # noqa: E402
from attar.core import registry  # noqa: E402
from attar.core.files import write_text  # noqa: E402
from attar.nets.names import NETWORKS  # noqa: E402
from attar.nets.train import Training  # noqa: E402
from attar.study import StudySpec  # noqa: E402

ROOT = Path(__file__).parents[1]
NOTE = "<!-- Written by `make docs` from the code; change the code instead. -->\n"
FAMILIES = {
    "select": ("Selectors", "select real examples"),
    "condense": ("Condensers", "learn synthetic examples"),
    "bayes": ("Pseudo-coresets", "learn synthetic examples for a posterior"),
    "infer": ("Samplers", "infer a posterior over network parameters from a coreset"),
}
LARGEST = 150_000  #: size limit of the picture in bytes


def pages() -> dict[Path, str]:
    """Every generated page, with its text."""
    made = {ROOT / "docs" / "methods.md": methods(), ROOT / "docs" / "cli.md": commands()}
    names = (
        "dependencies",
        "honest-numbers",
        "studies",
        "pseudo-coresets",
        "condensation",
        "selection",
        "applications",
        "results",
        "paper-tables",
        "board",
        "choose",
        "security",
        "scaling",
        "gpu",
    )
    for path in (ROOT / "README.md", *(ROOT / "docs" / f"{name}.md" for name in names)):
        made[path] = fill(path.read_text(encoding="utf-8"))
    return made


def fill(text: str) -> str:
    """Put every part between its two markers, if the page has them."""
    for name, part in PARTS.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        if begin in text:
            head, _, rest = text.partition(begin)
            text = f"{head}{begin}\n{part()}\n{end}{rest.partition(end)[2]}"
    return text


def methods() -> str:
    """The registry as a page: a table of all, then the equation and the options of each."""
    lines = [NOTE, "# Methods\n", "`attar methods` prints this table, `attar methods NAME` one entry.\n"]
    lines += ["Start here: `herding`, `dm`, `vbpc`. Times are for ten examples per class of Fashion-MNIST on one core"]
    lines += ["with default options; `attar experts` takes about 6 minutes more, once, for the methods that need it.\n"]
    lines += table(("name", "family", "what it does", "when to choose it", "time"), map(_entry, _sorted()))
    for family, entries in _families().items():
        title, about = FAMILIES[family]
        lines += [f"\n## {title}", f"\nThey {about}."]
        for entry in entries:
            lines += [f"\n### {entry.name}\n", markdown(entry.build.__doc__ or ""), f"\n*{entry.paper}.*\n"]
            lines += [f"Learns: {entry.learns}. Cost: {entry.cost}.\n"]
            options = list(_options(entry.build))
            lines += table(("option", "type and range", "default", "what it is"), options) or ["It has no options."]
    lines += [
        "\n## Training on a coreset\n",
        "The training settings that all rows of a comparison share (`attar.Training`).\n",
    ]
    lines += table(("option", "type and range", "default", "what it is"), _fields(Training, prefix="train-"))
    lines += ["\n## Networks\n"]
    lines += table(("name", "what it is"), ((f"`{name}`", about) for name, about in NETWORKS.items()))
    return "\n".join(lines) + "\n"


def commands() -> str:
    """The help of every command."""
    program = build()
    lines = [
        NOTE,
        "# Command line\n",
        "`attar reduce --method NAME --help` also shows the options of that method, and",
        "`attar infer --sampler NAME --help` those of that sampler. [Methods](methods.md) lists all of them.",
    ]
    for words in ([], *([name] for name in program.list_commands(None))):
        with redirect_stdout(io.StringIO()) as said:
            program([*words, "--help"], prog_name="attar", standalone_mode=False)
        text = "\n".join(line.rstrip() for line in said.getvalue().splitlines()).strip("\n")
        lines += [f"\n## {' '.join(['attar', *words])}\n", "```text", text, "```"]
    return "\n".join(lines) + "\n"


def study_fields() -> str:
    """The fields of a study's spec."""
    spec, rows = StudySpec().plain(), []
    for name, info in registry.fields(StudySpec).items():
        default = "" if spec[name] in (None, [], {}) or name == "training" else f"`{json.dumps(spec[name])}`"
        rows.append((f"`{name}`", default, info.description or ""))
    return "\n".join(table(("field", "default", "what it is"), rows))


PARTS: dict[str, Callable[[], str]] = {
    "study-fields": study_fields,
    **TABLES,
    **board_tables.TABLES,
    **condensation_tables.TABLES,
    **learning_tables.TABLES,
    **paper_tables.TABLES,
    **peer_tables.TABLES,
    **scaling_tables.TABLES,
    **selection_tables.TABLES,
    **tuning_tables.TABLES,
}


def picture() -> Path:
    """A screenshot of the committed report: its summary and the examples of the smallest size."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    path = ROOT / "docs" / "report.png"
    with sync_playwright() as tools:
        browser = tools.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1000, "height": 800}, color_scheme="light")
        page.goto((RESULTS / "digits" / "report.html").as_uri())
        page.add_style_tag(content="nav, #scores { display: none }")
        end = page.evaluate("document.querySelector('.shelf').getBoundingClientRect().bottom + 24")
        shot = page.screenshot(full_page=True, clip={"x": 0, "y": 0, "width": 1000, "height": end})
        browser.close()
    Image.open(io.BytesIO(shot), formats=["PNG"]).convert("RGB").quantize(256).save(path, "PNG", optimize=True)
    if path.stat().st_size > LARGEST:
        sys.exit(f"{path.name} has {path.stat().st_size:,} bytes: use a smaller window.")
    return path


def main(words: list[str]) -> None:
    """Write or check every page."""
    if unknown := set(words) - {"--check", "--picture"}:
        sys.exit(f"docs/make.py takes --check and --picture, not {' '.join(sorted(unknown))}.")
    stale = [path for path, text in pages().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in words:
        names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
        sys.exit(f"Out of date: {names}. Run make docs." if stale else 0)
    for path in stale:
        write_text(path, pages()[path])
    if "--picture" in words:
        stale.append(picture())
    sys.stdout.writelines(f"wrote {path.relative_to(ROOT)}\n" for path in stale)


def _sorted() -> list[registry.Entry]:
    order = list(FAMILIES)
    return sorted(registry.methods().values(), key=lambda entry: (order.index(entry.family), entry.name))


def _families() -> dict[str, list[registry.Entry]]:
    grouped: dict[str, list[registry.Entry]] = {}
    for entry in _sorted():
        grouped.setdefault(entry.family, []).append(entry)
    return grouped


def _entry(entry: registry.Entry) -> tuple[str, ...]:
    return f"[`{entry.name}`](#{entry.name})", entry.family, entry.about, entry.choose, entry.takes


def _options(method: type) -> Iterator[tuple[str, ...]]:
    yield from _fields(method)
    usual = getattr(method, "descent", None)
    if isinstance(usual, Descent):
        yield from _fields(Descent, usual)


def _fields(cls: type, usual: object = None, prefix: str = "") -> Iterator[tuple[str, ...]]:
    for name, info in registry.fields(cls).items():
        default = info.default if usual is None else getattr(usual, name)
        flag = f"`--{prefix}{name.replace('_', '-')}`"
        yield flag, describe(info), "" if default is None else f"`{default}`", info.description or ""


if __name__ == "__main__":
    main(sys.argv[1:])
