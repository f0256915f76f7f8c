"""The page as a browser shows it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from attar.report import accuracy_chart, report, write
from attar.report.board import board as write_board
from attar.report.explore import Explorer
from tests.board.boards import board
from tests.known import HANG, ROOT
from tests.report.applications import search, stages
from tests.report.assessments import plain, whole
from tests.report.running import Folder
from tests.report.studies import making, study
from tests.report.test_classes import many
from tests.report.test_map import pictures, split

sync_api = pytest.importorskip("playwright.sync_api", reason="needs the package playwright")
CHROMIUM = shutil.which("chromium")
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
pytestmark = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="needs chromium on the PATH")]

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LOOKS = [
    *(("sizes", *look) for look in ((390, "light"), (390, "dark"), (1280, "light"), (1920, "dark"))),
    *((name, *look) for name in ("asked", "features", "long") for look in ((1280, "light"), (390, "dark"))),
    *(("stages", 1280, "light"), ("search", 390, "dark"), ("many", 390, "light"), ("many", 1920, "dark")),
    *(("board", 1280, "light"), ("board", 390, "dark")),
]
LONG = "a class with a very long name indeed", "Donaudampfschifffahrtsgesellschaft", "<script>alert(1)</script>"

CONTRAST = """() => {
  const parse = c => c.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = e => { for (; e; e = e.parentElement) {
    const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] > 0) return c; } };
  const worst = [];
  const shown = 'h1,h2,h3,h4,p,li,a,th,td,dt,dd,caption span,figcaption,code,.role,.label,svg text,'
    + 'label,legend,summary,button';
  for (const e of document.querySelectorAll(shown)) {
    if (!e.textContent.trim()) continue;
    const ink = parse(getComputedStyle(e)[e.closest('svg') ? 'fill' : 'color']);
    const heat = e.classList.contains('count') && e.closest('svg').querySelector('.heat');
    const papers = [behind(e), ...(heat ? [parse(getComputedStyle(heat).fill)] : [])];
    for (const paper of papers) {
      const [a, b] = [light(ink), light(paper)].sort((x, y) => y - x);
      worst.push([(a + 0.05) / (b + 0.05), [e.tagName, e.getAttribute('class'), e.textContent.slice(0, 30)].join(' ')]);
    }
  }
  return worst.sort((x, y) => x[0] - y[0])[0];
}"""
COLLISIONS = """() => [...document.querySelectorAll('svg.chart')].flatMap(svg => {
  const frame = svg.getBoundingClientRect();
  const boxes = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
  const cut = boxes.filter(([, b]) => b.left < frame.left - 1 || b.right > frame.right + 1
    || b.top < frame.top - 1 || b.bottom > frame.bottom + 1).map(([t]) => 'cut: ' + t);
  const over = boxes.flatMap(([t, a], i) => boxes.slice(i + 1).filter(([, b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3).map(([u]) => 'over: ' + t + ' / ' + u));
  return cut.concat(over);
})"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Reports of pictures at two sizes, with every question asked, of features, of awkward names, of applications."""
    folder = tmp_path_factory.mktemp("study")
    methods = ("uniform", "herding", "craig", "dm", "bpc-cd", "full")
    sized = study(folder, methods, per_class=(1, 12))
    for key in ("dm-1-0", "bpc-cd-12-0"):
        making(folder, key, torch.rand(3, 1, 28, 28, generator=torch.Generator().manual_seed(0)), steps=12_000)
    write(sized, folder, folder / "sizes.html", split=split(pictures()))
    write(many(folder, 100), folder, folder / "many.html")
    asked = [whole("dm"), whole("bpc-cd", start="experts"), plain("a name as long as one may give a posterior")]
    write(study(folder, methods, evaluations=2), folder, folder / "asked.html", asked)
    (folder / "accuracy.svg").write_text(accuracy_chart(sized), encoding="utf-8")
    features = torch.randn(60, 13, generator=torch.Generator().manual_seed(0))
    making(folder, "dm-2-0", features[:3])
    write(study(folder, pool=features, labels=torch.arange(60) % 3), folder, folder / "features.html")
    write(study(folder, classes=LONG), folder, folder / "long.html")
    report(stages(), folder / "stages.html")
    report(search(), folder / "search.html")
    write_board(board(folder / "results"), folder / "board.html")
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS, timeout=1000 * HANG)
        yield chromium
        chromium.close()


def blank(browser: Any, **look: Any) -> Any:
    """A new page that waits for whatever is asked of it, however slow the machine is."""
    page = browser.new_page(**look)
    page.set_default_timeout(1000 * HANG)
    return page


@pytest.mark.parametrize(("name", "width", "scheme"), LOOKS)
def test_the_page_is_quiet_readable_and_as_wide_as_the_screen(
    browser: Any, folder: Path, name: str, width: int, scheme: str
) -> None:
    page = blank(browser, viewport={"width": width, "height": 900}, color_scheme=scheme)
    complaints: list[str] = []
    requests: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto((folder / f"{name}.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    assert complaints == []
    assert [url for url in requests if not url.startswith("data:")] == [(folder / f"{name}.html").as_uri()]
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    assert page.evaluate("[...document.images].every(image => image.naturalWidth > 0)")
    assert page.evaluate(COLLISIONS) == []
    ratio, where = page.evaluate(CONTRAST)
    assert ratio >= 4.5, where
    red = int(page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0]"))
    assert red < 60 if scheme == "dark" else red > 200
    page.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)
    page.close()


def test_the_chart_alone_follows_the_theme(browser: Any, folder: Path) -> None:
    colours = {}
    for scheme in ("light", "dark"):
        page = blank(browser, color_scheme=scheme)
        page.goto((folder / "accuracy.svg").as_uri())
        colours[scheme] = page.evaluate("getComputedStyle(document.querySelector('.surface')).fill")
        assert page.evaluate(COLLISIONS) == []
        page.close()
    assert colours["light"] == "rgb(255, 255, 255)"
    assert colours["dark"] != colours["light"]


def test_sections_are_reached_by_links_and_tables_by_keyboard(browser: Any, folder: Path) -> None:
    page = blank(browser)
    page.goto((folder / "asked.html").as_uri())
    assert page.evaluate("[...document.querySelectorAll('nav a')].every(a => document.querySelector(a.hash))")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.hash") == "#scores"
    assert page.evaluate("[...document.querySelectorAll('.scroll')].every(e => e.tabIndex === 0)")
    page.close()


def test_the_map_tells_keeps_and_exports_by_pointer_and_by_keyboard(browser: Any, folder: Path) -> None:
    page = blank(browser, viewport={"width": 1280, "height": 1000})
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto((folder / "sizes.html").as_uri())
    canvas = page.locator("#map canvas").first
    canvas.scroll_into_view_if_needed()
    assert page.locator("#map .tip").is_hidden()
    canvas.focus()
    page.keyboard.press("ArrowRight")  # the example in the middle, then its neighbours
    told = page.locator("#map .said").inner_text()
    assert told.split(" · ")[0] in ("shirt", "shoe", "bag")
    page.keyboard.press("ArrowRight")
    assert page.locator("#map .said").inner_text() != told
    assert page.locator("#map .tip canvas").count() == 1
    page.keyboard.press("Enter")
    (card,) = page.locator("#map .card").all()
    assert card.locator(".near figure").count() == 5
    assert card.locator("canvas").count() == 6

    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + 3)
    page.keyboard.down("Shift")
    page.mouse.down()
    for x, y in ((0.99, 0.01), (0.99, 0.99), (0.01, 0.99)):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
    page.mouse.up()
    page.keyboard.up("Shift")
    rows = page.locator("#map textarea").input_value().split()
    assert sorted(map(int, rows)) == list(range(0, 600, 10))  # the user's own numbers of all examples
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as file").click()
    assert Path(download.value.path()).read_text().split() == rows
    page.get_by_role("button", name="Clear").click()
    assert page.locator("#map .outcome").is_hidden()
    page.get_by_role("button", name="Remove").click()
    assert page.locator("#map .card").count() == 0
    assert complaints == []
    page.close()


def test_the_film_goes_by_slider_and_shows_what_changed(browser: Any, folder: Path) -> None:
    page = blank(browser)
    page.goto((folder / "sizes.html").as_uri())
    player = page.locator(".player").first
    shade = "at => { const c = at.getContext('2d').getImageData(2, 2, 1, 1).data; return [c[0], c[1], c[2]]; }"
    end = player.locator("canvas").evaluate(shade)
    player.get_by_role("slider").focus()
    page.keyboard.press("Home")
    assert player.locator("output").inner_text() == "start"
    assert player.get_by_role("slider").get_attribute("aria-valuetext") == "step start"
    start = player.locator("canvas").evaluate(shade)
    assert start[0] < end[0]  # examples of the film fade in
    player.get_by_role("checkbox").check()
    assert player.locator("canvas").evaluate(shade) == [247, 247, 247]  # nothing has changed at the start
    page.keyboard.press("Tab")
    player.get_by_role("slider").focus()
    page.keyboard.press("End")
    red, green, blue = player.locator("canvas").evaluate(shade)
    assert red > green > blue  # brighter
    player.get_by_role("button").click()
    assert player.get_by_role("button").inner_text() == "Pause"
    page.close()


def test_a_page_that_is_served_tells_of_runs_and_shows_new_results(browser: Any, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    with Explorer(tmp_path) as server:
        page = blank(browser)
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(server.url)
        page.get_by_text("0 of 4 runs are finished").wait_for()
        folder.finish()
        page.get_by_role("heading", name="Scores").wait_for()  # the first result comes by itself
        folder.log('{"step": 1200, "loss": 0.5}\n')
        page.get_by_text("uniform-2-1: step 1,200, loss 0.5").wait_for()
        while folder.left:
            folder.finish()
        page.get_by_text("All 4 runs are finished.").wait_for()
        page.get_by_role("button", name="Show new results").click()
        page.get_by_role("rowheader", name="dm best on validation").wait_for()
        page.get_by_text("All 4 runs are finished.").wait_for()
        assert page.get_by_role("button", name="Show new results").is_hidden()
        assert complaints == []
        page.close()


def test_the_board_is_sorted_and_filtered(browser: Any, folder: Path) -> None:
    page = blank(browser)
    page.goto((folder / "board.html").as_uri())
    shown = "[...document.querySelectorAll('#scores tbody tr')].filter(r => !r.hidden).map(r => r.dataset.method)"
    cell = "[...document.querySelectorAll('#scores tbody tr')].map(r => r.cells[%d].dataset.value)"

    page.click("th:has-text('Accuracy, %') button")
    low = [float(value) for value in page.evaluate(cell % 3)]
    assert low == sorted(low)
    assert page.get_attribute("th:has-text('Accuracy, %')", "aria-sort") == "ascending"
    page.keyboard.press("Enter")
    high = [float(value) for value in page.evaluate(cell % 3)]
    assert high == sorted(low, reverse=True)
    page.click("th:has-text('CPU s') button")
    heads = page.evaluate("[...document.querySelectorAll('#scores thead th')].map(h => h.innerText)")
    assert page.evaluate(cell % heads.index("CPU s"))[-1] == ""  # a set without a cost comes last
    page.click("th:has-text('Method') button")
    assert page.evaluate(shown) == sorted(page.evaluate(shown))

    page.select_option("select[name=problem]", "digits")
    page.select_option("select[name=size]", "1")
    assert sorted(page.evaluate(shown)) == ["dm", "herding", "uniform"]
    assert page.inner_text("#count") == "3 of 6 scores"
    figures = "[...document.querySelectorAll('#cost figure')].filter(f => f.offsetParent).map(f => f.dataset.problem)"
    assert page.evaluate(figures) == ["digits"]
    page.fill("input[name=method]", "HERD")
    assert page.evaluate(shown) == ["herding"]
    page.close()


@pytest.mark.skipif(not AXE.exists(), reason="needs axe-core: npm install --no-save axe-core")
@pytest.mark.parametrize("name", ["sizes", "asked", "many", "board"])
def test_no_rule_of_axe_is_broken(browser: Any, folder: Path, name: str) -> None:
    page = blank(browser, viewport={"width": 1280, "height": 900})
    page.goto((folder / f"{name}.html").as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(part => part.open = true)")
    page.evaluate(AXE.read_text(encoding="utf-8"))
    kept, broken = page.evaluate("axe.run().then(found => [found.passes.length, found.violations])")
    assert kept > 20
    assert [(rule["id"], [node["html"][:150] for node in rule["nodes"][:3]]) for rule in broken] == []
    page.close()
