"""What the site adds to the files of docs/: pages from elsewhere in the repository, and the pages of the API.

README, CONTRIBUTING and CHANGELOG become pages, every script of examples/ becomes one (its comments are the text), and
every name of ``attar.__all__`` stands on a page of the API. Links between files of the repository become links between
pages. MkDocs calls the functions that start with ``on_``.
"""

from __future__ import annotations

import ast
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PICTURES = {".png", ".svg"}
#: Files of the repository outside docs/ that are pages, and their places on the site.
ELSEWHERE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
ELSEWHERE |= {f"examples/{path.name}": f"examples/{path.stem}.md" for path in sorted(ROOT.glob("examples/*.py"))}
SOURCES = {page: source for source, page in ELSEWHERE.items()}

#: The pages of the API: title, introduction, and the objects on it.
API: dict[str, tuple[str, str, list[str]]] = {
    "data": ("Data", "From any source to train, validation and test sets.", ["load", "Split", "Data"]),
    "reduce": (
        "Reduction",
        "From a data set to a few examples.",
        ["reduce", "select", "plan", "experts", "Schedule", "methods", "SelectionWarning", "SkewWarning"],
    ),
    "coreset": ("Coresets", "What a reduction returns: one file.", ["Coreset", "Recipe", "push_to_hub"]),
    "infer": ("Inference", "From examples to a posterior and its scores.", ["infer", "Draws", "evaluate"]),
    "nets": ("Networks and training", "What is trained, and how.", ["network", "Network", "Training"]),
    "study": ("Studies and reports", "Comparisons, and the page of one.", ["compare", "StudySpec", "Study", "report"]),
    "board": ("The board", "Coresets that are judged alike.", ["submit", "board"]),
    "applications": ("Applications", "What coresets are for.", ["continual", "ContinualSpec", "nas", "NasSpec"]),
    "other": ("Other", "The scikit-learn estimator, and errors.", ["CoresetClassifier", "AttarError"]),
}


def paths() -> dict[str, str]:
    """Where the names that ``attar`` exports are defined: ``attar.NAME`` may be a module, too."""
    tree = ast.parse((ROOT / "src" / "attar" / "_public.py").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    ours = [node for node in imports if f"{node.module}".startswith("attar.")]
    return {name.name: f"{node.module}.{name.name}" for node in ours for name in node.names}


PATHS = paths()
API["other"][2].extend(sorted(PATHS.keys() - {name for _, _, names in API.values() for name in names}))


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from elsewhere, the pictures that they show, and the API."""
    for source, page in ELSEWHERE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=script(source, text) if source.endswith(".py") else text))
    for name, (title, about, names) in API.items():
        objects = [f"::: {PATHS[each]}\n    options:\n      heading: attar.{each}" for each in names]
        text = "\n\n".join([f"# {title}", about, *objects])
        files.append(File.generated(config, f"api/{name}.md", content=text))
    for file in list(files.documentation_pages()):
        source = SOURCES.get(file.src_uri, f"docs/{file.src_uri}")
        for target in re.findall(r"\]\(([^)\s#:]+)\)", file.content_string):
            path = _resolve(source, target)
            if (
                Path(path).suffix in PICTURES
                and not path.startswith("docs/")
                and files.get_file_from_path(path) is None
            ):
                files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links of the repository become links of the site; markers of generated parts go."""
    place = page.file.src_uri
    source = SOURCES.get(place, f"docs/{place}")
    text = re.sub(r"^<!--.*?-->$", "", markdown, flags=re.MULTILINE)
    parts = re.split(r"(^ *```.*?^ *```$)", text, flags=re.DOTALL | re.MULTILINE)  # blocks of code stay as they are
    parts[::2] = [_links(part, source, place) for part in parts[::2]]
    return "".join(parts)


def _links(text: str, source: str, place: str) -> str:
    """The links of a page that lies at ``source`` in the repository and at ``place`` on the site."""

    def link(found: re.Match[str]) -> str:
        words, target, heading = found["words"], found["target"], found["heading"] or ""
        path = _resolve(source, target)
        where = ELSEWHERE.get(path, path.removeprefix("docs/"))
        if path.startswith("docs/") or path in ELSEWHERE or Path(path).suffix in PICTURES:
            return f"[{words}]({posixpath.relpath(where, posixpath.dirname(place) or '.')}{heading})"
        if not (ROOT / path).exists():
            raise ValueError(f"{source} links to {target}, which does not exist.")
        return words if path in words else f"{words} (`{path}`)"  # source code, which is not on the site

    return re.sub(r"\[(?P<words>[^]]*)\]\((?P<target>[^)\s#:]+)(?P<heading>#[^)\s]*)?\)", link, text)


def _resolve(source: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))


def script(source: str, text: str) -> str:
    """A script as a page: the docstring is title and introduction, ``# %% [markdown]`` starts text, ``# %%`` code."""
    about = ast.get_docstring(ast.parse(text)) or ""
    title, _, rest = about.partition(":")
    body = text.partition('"""\n')[2] if text.startswith('"""') else text
    cells = re.split(r"^# %%(.*)\n", body, flags=re.MULTILINE)
    lines = [f"# {title}", f"{rest.strip()[:1].upper()}{rest.strip()[1:]}"]
    for kind, cell in zip(["", *cells[1::2]], cells[::2], strict=True):
        if kind.strip() == "[markdown]":
            lines.append("\n".join(re.sub(r"^# ?", "", line) for line in cell.strip().splitlines()))
        elif cell.strip():
            lines.append(f"```python\n{cell.strip()}\n```")
    lines.append(f"The whole script is `{source}`; the tests run it.")
    return "\n\n".join(lines) + "\n"
