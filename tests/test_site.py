"""The site builds without a warning, its links lead somewhere, and it has every page."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType

import pytest

from tests.known import ROOT, wait_until

CHECK = ROOT / "docs" / "site_check.py"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("material", "mkdocstrings", "latex2mathml"):
        pytest.importorskip(package, reason="needs the extra site")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "docs"), "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def checker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_check", CHECK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_link_of_the_site_leads_somewhere(site: Path) -> None:
    assert checker().check(site) == []


def test_formulas_are_drawn_and_none_is_left_as_text(site: Path) -> None:
    assert "<math" in (site / "methods.html").read_text("utf-8")
    pages = [(path.name, path.read_text("utf-8")) for path in site.rglob("*.html")]
    left = {name for name, text in pages if re.search(r"\$<code>|^[^\"]*(:math:|\.\. math)", text, re.MULTILINE)}
    assert left == set()
    drawn = [(name, formula) for name, text in pages for formula in re.findall(r"<math.*?</math>", text, re.DOTALL)]
    assert len(drawn) > 100
    assert [name for name, formula in drawn if "\\" in formula] == []  # a command that was not understood


def test_the_api_shows_arguments_fields_and_comments(site: Path) -> None:
    text = (site / "api" / "nets.html").read_text("utf-8")
    assert "weight_decay" in text
    assert (site / "api" / "data.html").read_text("utf-8").count("scaling") > 3


def test_the_search_finds_pages_of_every_kind(site: Path) -> None:
    index = (site / "search" / "search_index.json").read_text("utf-8")
    for words in ("Nearest to the class mean", "tempered posterior", "attar.load", "Share a coreset", "Unreleased"):
        assert words.lower() in index.lower(), words


@pytest.mark.browser
def test_the_search_box_finds_a_page(site: Path) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    if (chromium := shutil.which("chromium")) is None:
        pytest.skip("needs chromium on the PATH")
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            with sync_api.sync_playwright() as tools:
                browser = tools.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
                page = browser.new_page()

                def answered() -> bool:  # what is typed before the page has its script goes unheard: it is opened again
                    page.goto(f"http://127.0.0.1:{server.server_port}/index.html", wait_until="networkidle")
                    page.fill("input.md-search__input", "tempered posterior")
                    try:
                        page.locator(".md-search-result__item").first.wait_for(timeout=20_000)
                    except sync_api.TimeoutError:
                        return False
                    return True

                wait_until(answered)
                found = page.locator(".md-search-result__item").first.inner_text()
                browser.close()
        finally:
            server.shutdown()
    assert "tempered" in found.lower()


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and prints nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


def test_every_page_and_every_example_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    wanted = [path.name for path in (ROOT / "docs").glob("*.md")]
    wanted += [f"examples/{path.stem}.md" for path in (ROOT / "examples").glob("*.py")]
    assert [name for name in wanted if not re.search(rf": {name}$", navigation, re.MULTILINE)] == []


PAGE = '<a id="top"></a><a href="b.html#here">b</a><img src="c.png"><script src="d.js"></script>'


def test_the_check_names_what_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(PAGE)
    for name in ("c.png", "d.js"):
        (tmp_path / name).write_text("")
    (tmp_path / "b.html").write_text('<h1 id="here">b</h1><a href="a.html#top">a</a>')
    assert checker().check(tmp_path) == []
    (tmp_path / "a.html").write_text(
        PAGE.replace("#here", "#there").replace("c.png", "e.png").replace("d.js", "//x.org/d.js")
    )
    assert [sentence.partition(" links")[0].partition(" loads")[0] for sentence in checker().check(tmp_path)] == [
        "a.html"
    ] * 3
    assert checker().check(tmp_path / "empty") != []
