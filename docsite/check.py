"""Check the built site: no dead link or anchor, nothing from another host, every page in the search: `make docs`."""

from __future__ import annotations

import json
import posixpath
import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["main", "problems"]

# What a browser loads by itself, by element and attribute.
_LOADED: Final = {("script", "src"), ("img", "src"), ("source", "src"), ("iframe", "src"), ("link", "href")}
_CSS: Final = re.compile(r"(?:url\(\s*[\"']?|@import\s+[\"'])(?P<url>(?:https?:)?//[^\"')\s]+)")


@dataclass
class _Page(HTMLParser):
    """The anchors of a page, its links, and what it loads."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    is_redirect: bool = False

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if not value:
                continue
            if name == "id" or (tag == "a" and name == "name"):
                self.anchors.add(value)
            if (tag, name) in _LOADED:
                self.loaded.append(value)
                self.links.append(value)
            if (tag, name) == ("a", "href"):
                self.links.append(value)
            if (tag, name, value) == ("meta", "http-equiv", "refresh"):
                self.is_redirect = True


def problems(site: Path) -> Iterator[str]:
    """Yield what is wrong with a built site, a line each."""
    pages: dict[str, _Page] = {}
    for path in sorted(site.rglob("*.html")):
        pages[path.relative_to(site).as_posix()] = page = _Page()
        page.feed(path.read_text("utf-8"))
    for name, page in pages.items():
        for url in page.loaded:
            if urlsplit(url).netloc:
                yield f"{name}: loads {url} from another host"
        # The page of an unknown path is shown at any depth, so its links begin at the root.
        for url in dict.fromkeys(page.links if name != "404.html" else ()):
            if problem := _dead(site, pages, name, url):
                yield f"{name}: {problem}"
    yield from _foreign_styles(site)
    index = site / "search" / "search_index.json"
    indexed = {urlsplit(entry["location"]).path for entry in json.loads(index.read_text("utf-8"))["docs"]}
    for name in sorted(name for name, page in pages.items() if not page.is_redirect and name != "404.html"):
        if name not in indexed:
            yield f"{name}: the search does not have it"


def _foreign_styles(site: Path) -> Iterator[str]:
    for path in sorted(site.rglob("*.css")):
        for found in _CSS.finditer(path.read_text("utf-8")):
            yield f"{path.relative_to(site)}: loads {found['url']} from another host"


def _dead(site: Path, pages: dict[str, _Page], name: str, url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme or parts.netloc:
        return ""
    if parts.path.startswith("/"):
        return f"{url} begins at the root of the host"
    target = posixpath.normpath(posixpath.join(posixpath.dirname(name), unquote(parts.path))) if parts.path else name
    if not (site / target).is_file():
        return f"{url} leads nowhere"
    anchor = unquote(parts.fragment)
    # The theme's own anchor for the top of a page.
    if anchor and anchor != "__top" and target in pages and anchor not in pages[target].anchors:
        return f"{url} names an anchor that its page does not have"
    return ""


def main(words: list[str]) -> int:
    """Print what is wrong with the site in a folder; return the exit status."""
    found = list(problems(Path(words[0])))
    sys.stdout.writelines(f"{line}\n" for line in found)
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
