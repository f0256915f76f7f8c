"""The documentation is up to date, its links lead somewhere, and its commands and code run."""

import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from inspect import isfunction, signature
from pathlib import Path
from statistics import mean
from types import ModuleType

import pytest

import attar
from attar.cli import main
from attar.core import registry
from attar.study import Study
from tests.known import ROOT, gaussians

README = (ROOT / "README.md").read_text(encoding="utf-8")
FIRST = (ROOT / "docs" / "first-steps.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
GPU = (ROOT / "docs" / "gpu.md").read_text(encoding="utf-8")
PICTURES = [*(ROOT / "docs").glob("*.png"), *(ROOT / "docs" / "pictures").glob("*.svg")]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]


def of_pages() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)


def prose(text: str) -> str:
    return re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """File and heading of every relative link."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page.read_text(encoding="utf-8"))):
        if not re.match(r"[a-z]+:", target):
            path, _, heading = target.partition("#")
            yield (page.parent / path if path else page).resolve(), heading


def headings(page: Path) -> set[str]:
    """Headings in the form in which GitHub links to them."""
    found = re.findall(r"^#+ (.+)$", prose(page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def test_what_is_written_from_code_and_results_is_up_to_date() -> None:
    check = subprocess.run([sys.executable, "docs/make.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert check.returncode == 0, check.stderr


def test_every_table_of_results_stands_on_a_page() -> None:
    code = "".join(path.read_text("utf-8") for path in (ROOT / "docs").glob("*tables.py"))
    names = re.findall(r'^    "([a-z-]+)": \w+,$', code, flags=re.MULTILINE)
    text = "".join(page.read_text("utf-8") for page in PAGES)
    assert len(names) > 10
    assert [name for name in names if f"<!-- {name}:begin -->" not in text] == []


@of_pages()
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for path, heading in links(page):
        assert path.exists(), f"{page.name} links to {path}"
        assert path.is_relative_to(ROOT), f"{page.name} links out of the repository, to {path}"
        assert not heading or heading in headings(path), f"{page.name} links to {path.name}#{heading}"


def test_ten_words_and_a_paragraph_name_every_public_class_and_what_functions_return() -> None:
    words = ARCHITECTURE.partition("## Ten words\n")[2].partition("\n## ")[0]
    table = re.findall(r"^\| `?(\w+)`? \|", words, flags=re.MULTILINE)[1:]
    public = [getattr(attar, name) for name in attar.__all__]
    classes = {value.__name__ for value in public if isinstance(value, type)}
    returned = {text for value in public for text in re.findall(r"\b[A-Z]\w+", returns(value))} - {"None", "Path"}
    assert len(table) == 10
    assert [name for name in sorted(classes | returned) if f"`{name}`" not in words] == []


def returns(value: object) -> str:
    """What a function returns, as its annotation says."""
    return str(signature(value).return_annotation) if isfunction(value) else ""


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) < 100


def test_no_committed_text_names_a_place_on_someone_s_machine() -> None:
    folders = [ROOT / name for name in ("docs", "examples", "benchmarks", "src", "tests", ".ci")]
    texts = {".md", ".py", ".json", ".csv", ".html", ".svg", ".toml", ".css", ".j2"}
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in texts]
    files += [*PAGES, ROOT / "Makefile", ROOT / "pyproject.toml", ROOT / "constraints.txt", ROOT / "CITATION.cff"]
    private = re.compile(r"(?<![\w.~])/(?:home|root|Users|work|mnt|tmp)/[\w.]")
    assert [path.name for path in files if private.search(path.read_text("utf-8", "replace"))] == []


def test_the_readme_shows_the_two_commands() -> None:
    shown = [line.partition("#")[0].split() for block in blocks(README, "sh") for line in block.splitlines()]
    assert [words[1] for words in shown if words[0] == "make"] == ["demo", "test"]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda path: path.name)
def test_pictures_are_small_and_on_a_page(picture: Path) -> None:
    assert 0 < picture.stat().st_size < 150_000
    assert picture in {path for page in PAGES for path, _ in links(page)}


def test_the_accuracies_of_the_first_picture_are_those_of_the_committed_study() -> None:
    runs = Study.load(ROOT / "benchmarks" / "results" / "digits" / "study.json").groups()
    text = (ROOT / "docs" / "pictures" / "idea.svg").read_text("utf-8")
    for name in (("uniform", 1), ("herding", 1), ("dm", 1), ("full-converged", None)):
        assert f"{100 * mean(run.test.accuracy for run in runs[name]):.1f} %" in text


def test_every_extra_is_explained() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    assert [extra for extra in EXTRAS if f"`{extra}`" not in text] == []


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that name no network run with one that trains in no time."""
    monkeypatch.setattr(import_module("attar.nets.names"), "default", lambda problem: "convnet-d1w4")


@pytest.mark.usefixtures("small")
def test_the_commands_of_the_first_steps_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line for block in blocks(FIRST, "sh") for line in block.splitlines() if line.startswith("attar ")]
    assert len(lines) == 4
    for line in lines:
        with pytest.raises(SystemExit) as end:
            main(shlex.split(line.replace("--steps 50", "--steps 2").replace("--draws 5", "--draws 2"))[1:])
        assert end.value.code == 0, line


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("text", "made"),
    [(README, ["ten-digits.safetensors"]), (FIRST, ["digits-dc-1.safetensors", "digits.npz"]), (GPU, [])],
    ids=["readme", "first-steps", "gpu"],
)
def test_the_python_of_a_page_runs(text: str, made: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks(text, "python"))
    exec(code.replace('"steps": 50', '"steps": 2').replace("draws=5", "draws=2"), {})
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix != ".cost") == made


def test_the_python_of_the_page_on_selection_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks((ROOT / "docs" / "selection.md").read_text("utf-8"), "python"))
    exec(code, {})
    assert [path.name for path in tmp_path.iterdir()] == ["picks.csv"]


def test_the_page_on_selection_says_what_every_selector_needs() -> None:
    text = (ROOT / "docs" / "selection.md").read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`([a-z0-9-]+)`", row.split("|")[1])}
    assert named == set(attar.methods("select"))


def test_the_methods_of_the_walk_through_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_entries", dict(registry.methods()))  # so that other tests do not see them
    data = gaussians()
    for name, code in zip(
        ("nearest", "means"), blocks((ROOT / "CONTRIBUTING.md").read_text("utf-8"), "python"), strict=True
    ):
        module(tmp_path / f"{name}.py", code, monkeypatch)
        coreset = attar.reduce(data, name, per_class=1, network="linear")
        means = [data.of_class(c).x.mean(0) for c in range(data.classes)]
        gaps = [float((x - mean).norm()) for x, mean in zip(coreset.data.x, means, strict=True)]
        usual = [float((data.of_class(c).x - mean).norm(dim=1).mean()) for c, mean in enumerate(means)]
        assert all(gap < typical for gap, typical in zip(gaps, usual, strict=True))


def module(path: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path.write_text(code, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, path.stem, made)
    spec.loader.exec_module(made)
    return made


def test_which_method_claims_no_order_where_seeds_are_too_few() -> None:
    text = (ROOT / "docs" / "choose.md").read_text(encoding="utf-8")
    blocks = [block.split("\n#")[0] for block in text.split("\n**") if "- Fewer than 5 seeds" in block]
    assert blocks
    for claim in ("better than", "Highest on", "Budget", "take a random subset"):
        assert not [block for block in blocks if claim in block]


def test_a_figure_of_two_seeds_shows_both_instead_of_an_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "docs")
    figure = import_module("paper_tables")._figure
    assert figure([61.88, 43.86], ".1f") == "52.9 (43.9, 61.9)"
    assert figure([1.0, 1.0, 1.0], ".1f") == "1.0 ± 0.0"
    assert figure([0.25], ".2f") == "0.25"
