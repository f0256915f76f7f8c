"""Check a built site: every link and picture leads to a file and a place in it, and nothing is loaded from elsewhere.

``python docs/site_check.py FOLDER`` prints what is wrong and fails if there is anything.
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("image", "href")}


class Page(HTMLParser):
    """The links of a page, what it loads, and the places that can be linked to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Called for every element."""
        for name, value in attrs:
            if name == "id" or (tag, name) == ("a", "name"):
                self.places.add(value or "")
            elif (tag, name) in LOADED and value:
                self.loaded.append(value)
            elif (tag, name) == ("a", "href") and value:
                self.links.append(value)


def check(folder: Path) -> list[str]:
    """A sentence for every link that leads nowhere and everything that is loaded from another host."""
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}
    wrong = []
    for path, page in pages.items():
        name = path.relative_to(folder.resolve())
        wrong += [f"{name} loads {link} from elsewhere" for link in page.loaded if urlsplit(link).netloc]
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or name.name == "404.html":  # links of that page are absolute
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file():
                wrong.append(f"{name} links to {link}, which is not there")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
                wrong.append(f"{name} links to {link}, but {target.name} has no such place")
    return wrong if pages else [f"{folder} has no page"]


if __name__ == "__main__":
    wrong = check(Path(sys.argv[1]))
    sys.exit("\n".join(wrong) if wrong else 0)
