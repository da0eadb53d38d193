"""Check of the built documentation site: nothing comes from another host, and every local link leads somewhere.

python -m tests.docs.site_check build/site
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

_LOADS = frozenset({"src", "srcset", "poster", "data", "action"})  # attributes that make a browser send a request
_LINK_LOADS = frozenset({"stylesheet", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch", "icon"})
_CSS_LOAD = re.compile(r"(?:@import\s+|url\(\s*)[\"']?((?:https?:)?//[^\"')\s]+)")
_SCRIPT_ADDRESS = re.compile(r"[\"'`](https?://[^\"'`\s]+)")
_NAMESPACES = ("http://www.w3.org/",)
_GENERATED = frozenset({"genindex.html", "search.html"})  # pages of the generator, with anchors made by scripts


class Problem(NamedTuple):
    page: str
    text: str


class _Page(HTMLParser):
    """Links, loaded addresses and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        self.loads += [values[name] for name in _LOADS if name in values and (tag, name) != ("a", "data")]
        if tag == "link" and _LINK_LOADS & set(values.get("rel", "").split()):
            self.loads.append(values.get("href", ""))
        self.loads += _CSS_LOAD.findall(values.get("style", ""))


def problems(site: Path) -> list[Problem]:
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    found = [problem for path, page in pages.items() for problem in _of_page(site, path, page, pages)]
    for path in sorted((*site.rglob("*.css"), *site.rglob("*.svg"))):
        addresses = _CSS_LOAD.findall(path.read_text(encoding="utf-8", errors="replace"))
        found += [Problem(_name(site, path), f"loads {each}") for each in addresses]
    for path in sorted(site.rglob("*.js")):
        addresses = _SCRIPT_ADDRESS.findall(path.read_text(encoding="utf-8", errors="replace"))
        if path.name != "searchindex.js":  # it holds the words of the pages
            found += [Problem(_name(site, path), f"names {each}") for each in addresses if not _is_namespace(each)]
    return found


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def _of_page(site: Path, path: Path, page: _Page, pages: dict[Path, _Page]) -> list[Problem]:
    name = _name(site, path)
    found = [Problem(name, f"loads {each}") for each in page.loads if _is_of_another_host(each)]
    for address in (*page.links, *page.loads):
        parts = urlsplit(address)
        if parts.scheme or parts.netloc:
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        if not target.exists():
            found.append(Problem(name, f"leads nowhere: {address}"))
        elif _misses_anchor(parts.fragment, pages.get(target)) and path.name not in _GENERATED:
            found.append(Problem(name, f"no such anchor: {address}"))
    return found


def _misses_anchor(fragment: str, page: _Page | None) -> bool:
    return bool(fragment) and page is not None and unquote(fragment) not in page.anchors


def _is_of_another_host(address: str) -> bool:
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme in {"http", "https"}


def _is_namespace(address: str) -> bool:
    return address.startswith(_NAMESPACES)


def _name(site: Path, path: Path) -> str:
    return str(path.relative_to(site))


def main(arguments: list[str]) -> int:
    site = Path(arguments[0]).resolve()
    if not list(site.rglob("*.html")):
        print(f"{site} holds no pages")
        return 1
    found = problems(site)
    for each in found:
        print(f"{each.page}: {each.text}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
