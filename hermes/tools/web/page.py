"""From an HTML page to text that a model can read: headings, lists, links, tables and code stay; the rest goes.

Rules:
- What a reader would not see is not shown: scripts, styles, hidden elements, and the page's own furniture
  (navigation, sidebars, footers, forms). When the page says which part is its main one, only that is shown.
- No page is refused. Tags that are not closed, not opened or nested beyond sense cost layout, not text.
- Nothing is fetched and nothing is run.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urljoin, urlsplit

from hermes.tools.web.table import HtmlTable


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_UNSEEN: Final = _names(
    "script style noscript template svg math iframe object embed canvas audio video nav aside footer button select "
    "textarea datalist dialog menu"
)
_UNSEEN_ROLES: Final = _names("navigation banner contentinfo search complementary menu menubar dialog")
_VOID: Final = _names("area base br col embed hr img input link meta param source track wbr keygen frame")
_BLOCKS: Final = _names(
    "address article blockquote body center dd details div dl dt fieldset figcaption figure form h1 h2 h3 h4 h5 h6 "
    "header html li main ol p pre section summary table tr ul"
)
# A start tag, the elements that it ends, and those beyond which it ends nothing.
_ENDS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "li": (("li",), ("ul", "ol")),
    "dt": (("dt", "dd"), ("dl",)),
    "dd": (("dt", "dd"), ("dl",)),
    "td": (("td", "th"), ("tr", "table")),
    "th": (("td", "th"), ("tr", "table")),
    "tr": (("tr",), ("table",)),
}
_HEADINGS: Final = {f"h{level}": level for level in range(1, 7)}
_INVISIBLE_STYLE: Final = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_LANGUAGE: Final = re.compile(r"\b(?:language|lang|highlight-source)-([\w+#-]+)")
_DEEPEST: Final = 400  # elements inside each other; what is deeper is read as if it were not there
_MAIN_IS_ENOUGH_CHARS: Final = 200

Attributes = dict[str, str]


def readable(html: str, url: str) -> tuple[str, str]:
    """The page's title and its text. The URL is what its links are relative to."""
    reader = _PageReader(url)
    reader.feed(html)
    reader.close()
    return reader.title, reader.text()


class _PageReader(HTMLParser):
    def __init__(self, url: str) -> None:
        super().__init__(convert_charrefs=True)
        self.title = ""
        self._base = url
        self._open: list[tuple[str, bool]] = []  # elements, and whether what is in them is not shown
        self._unseen = 0
        self._blocks: list[str] = []
        self._line: list[str] = []  # of the block that is being read
        self._mark = ""  # what the next block begins with: a bullet, a heading's signs
        self._lists: list[int] = []  # open ones: the next number, or 0 for bullets
        self._quotes = 0
        self._links: list[tuple[str, int]] = []  # where to, and where in the line its text begins
        self._tables: list[HtmlTable] = []
        self._code: list[str] | None = None  # of a code block
        self._language = ""
        self._main: tuple[int, int] | None = None

    def text(self) -> str:
        self._end_block()
        self._end_code()
        while self._tables:
            self._end_table()
        if self._main and sum(map(len, self._blocks[slice(*self._main)])) >= _MAIN_IS_ENOUGH_CHARS:
            self._blocks = self._blocks[slice(*self._main)]
        parts: list[str] = []
        last = ""
        for block in self._blocks:
            parts += ("\n" if _is_item(block) and _is_item(last) else "\n\n", block)
            last = block.rpartition("\n")[2]
        return "".join(parts).strip("\n")

    # ------------------------------------------------------------ what the parser finds

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "base" and attributes.get("href"):
            self._base = urljoin(self._base, attributes["href"])
        self._close_before(tag)
        unseen = _is_unseen(tag, attributes)
        if tag not in _VOID and len(self._open) < _DEEPEST:
            self._open.append((tag, unseen))
            self._unseen += unseen
        if not self._unseen and not unseen:
            self._start(tag, attributes)

    def handle_endtag(self, tag: str) -> None:
        if not any(name == tag for name, _ in reversed(self._open)):
            return
        while self._open:  # what was not closed ends with what it is in
            name, unseen = self._open.pop()
            if not self._unseen:
                self._end(name)
            self._unseen -= unseen
            if name == tag:
                break

    def _close_before(self, tag: str) -> None:
        """End what this element ends by beginning: pages leave out the end of paragraphs, items, rows and cells."""
        if tag in _BLOCKS and self._open and self._open[-1][0] == "p":
            self.handle_endtag("p")
        ended, holder = _ENDS.get(tag, ((), ()))
        found = ""
        for name, _ in reversed(self._open):
            if name in holder:
                break
            if name in ended:
                found = name
        if found:
            self.handle_endtag(found)

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1][0] == "title" and not any(name == "svg" for name, _ in self._open):
            self.title = self.title or " ".join(data.split())
        elif self._unseen or any(name == "head" for name, _ in self._open[:3]):
            return
        elif self._code is not None:
            self._code.append(data)
        else:
            self._line.append(re.sub(r"\s+", " ", data))

    # ------------------------------------------------------------ what it means

    def _start(self, tag: str, attributes: Attributes) -> None:
        if self._code is not None:
            self._language = self._language or _language(attributes)
            if tag == "br":
                self._code.append("\n")
        elif tag in _BLOCKS:
            self._end_block()
            self._start_block(tag, attributes)
        else:
            self._start_inline(tag, attributes)

    def _start_inline(self, tag: str, attributes: Attributes) -> None:
        match tag:
            case "br":
                self._line.append("\n")
            case "hr":
                self._end_block()
                self._add("---")
            case "img" if attributes.get("alt", "").strip():
                self._line.append(f"[image: {' '.join(attributes['alt'].split())}]")
            case "a":
                self._links.append((attributes.get("href", ""), len(self._line)))
            case "code" | "kbd" | "samp":
                self._line.append("`")
            case "td" | "th":
                self._start_in_table(tag)

    def _start_block(self, tag: str, attributes: Attributes) -> None:
        match tag:
            case "pre":
                self._code, self._language = [], _language(attributes)
            case "ul" | "ol":
                start = attributes.get("start", "1")
                self._lists.append(0 if tag == "ul" else int(start) if start.isdecimal() and len(start) < 9 else 1)
            case "li" | "dd":
                self._mark = self._item() if tag == "li" else "  "
            case "blockquote":
                self._quotes += 1
            case "main":
                self._main = self._main or (len(self._blocks), -1)
            case "table" | "tr":
                self._start_in_table(tag)
            case _ if tag in _HEADINGS:
                self._mark = "#" * _HEADINGS[tag] + " "

    def _end(self, tag: str) -> None:
        if self._code is not None:
            if tag == "pre":
                self._end_code()
            return
        if tag == "a":
            self._end_link()
        elif tag in ("code", "kbd", "samp"):
            self._end_inline_code()
        elif tag in ("td", "th"):
            self._end_cell(heading=tag == "th")
        if tag in _BLOCKS:
            self._end_block()
        match tag:
            case "ul" | "ol" if self._lists:
                self._lists.pop()
            case "blockquote":
                self._quotes -= 1
            case "table":
                self._end_table()
            case "main" if self._main and self._main[1] < 0:
                self._main = (self._main[0], len(self._blocks))
            case _:
                if tag in _HEADINGS or tag in ("li", "dd"):
                    self._mark = ""

    # ------------------------------------------------------------ blocks

    def _end_block(self) -> None:
        if self._links and self._show_target(*self._links[-1]):
            self._links[-1] = ("", 0)  # a link around several blocks is shown with the first
        text = _tidy("".join(self._line))
        if self._tables and self._tables[-1].in_cell:
            self._line[:] = [text + " "] if text else []  # a cell is one line, whatever is in it
            self._links = [(url, 0) for url, _ in self._links]
            return
        self._line.clear()
        self._links = [(url, 0) for url, _ in self._links]
        if text:
            indent = " " * len(self._mark) if self._mark and not self._mark.startswith("#") else ""
            self._add(self._mark + text.replace("\n", "\n" + indent))
            self._mark = indent

    def _add(self, block: str) -> None:
        quote = "> " * min(self._quotes, 5)
        self._blocks.append(quote + block.replace("\n", "\n" + quote) if quote else block)

    def _item(self) -> str:
        indent = "  " * (min(len(self._lists), 10) - 1) if self._lists else ""
        if not self._lists or not self._lists[-1]:
            return indent + "- "
        self._lists[-1] += 1
        return f"{indent}{self._lists[-1] - 1}. "

    def _end_code(self) -> None:
        if self._code is None:
            return
        text = "".join(self._code).strip("\n").rstrip()
        self._code = None
        if self._tables and self._tables[-1].in_cell:
            self._tables[-1].is_layout = True  # code in a cell: the lines matter more than the columns
            self._tables[-1].in_cell = False
            self._end_block()
        if text:
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
            self._add(f"{fence}{self._language}\n{text}\n{fence}")

    def _end_link(self) -> None:
        if self._links:
            self._show_target(*self._links.pop())

    def _show_target(self, href: str, first: int) -> bool:
        """Put where a link leads behind its text, which begins at that place of the line. Whether there was any."""
        text = "".join(self._line[first:])
        if not text.strip():
            return False
        target = _target(self._base, href)
        if href.startswith("#") and len(text.strip()) < 2:  # the sign beside a heading that links to it
            del self._line[first:]
        elif target and target.rstrip("/") != text.strip().rstrip("/"):
            self._line[first:] = [text.rstrip(), f" ({target})", " " if text[-1:].isspace() else ""]
        return True

    def _end_inline_code(self) -> None:
        if self._line and self._line[-1] == "`":  # there was nothing in it
            self._line.pop()
        else:
            self._line.append("`")

    # ------------------------------------------------------------ tables

    def _start_in_table(self, tag: str) -> None:
        if tag == "table":
            if self._tables and self._tables[-1].in_cell:  # tables in tables are how old pages are laid out
                outer = self._tables[-1]
                outer.is_layout, outer.in_cell = True, False
                for row in outer.take_rows():
                    self._add(row)
                self._end_block()
            self._tables.append(HtmlTable())
        elif self._tables and tag == "tr":
            self._tables[-1].start_row()
        elif self._tables:
            self._end_block()
            self._line.clear()
            self._tables[-1].in_cell = not self._tables[-1].is_layout

    def _end_cell(self, *, heading: bool) -> None:
        if self._tables and self._tables[-1].in_cell:
            self._tables[-1].add_cell(_tidy("".join(self._line)).replace("\n", " "), heading=heading)
            self._line.clear()

    def _end_table(self) -> None:
        if not self._tables:
            return
        self._end_cell(heading=False)
        table = self._tables.pop()
        self._line.clear()
        if text := table.text():
            self._add(text)


def _is_unseen(tag: str, attributes: Attributes) -> bool:
    if tag in ("html", "body"):  # some pages show themselves only when their scripts have run
        return False
    return (
        tag in _UNSEEN
        or "hidden" in attributes
        or attributes.get("aria-hidden", "").lower() == "true"
        or attributes.get("role", "").lower() in _UNSEEN_ROLES
        or bool(_INVISIBLE_STYLE.search(attributes.get("style", "")))
    )


def _target(base: str, href: str) -> str:
    """Where a link leads, when that is somewhere else."""
    if not href.strip() or href.startswith("#"):
        return ""
    try:
        target = urljoin(base, href.strip())
        scheme = urlsplit(target).scheme
    except ValueError:
        return ""
    return target.replace(" ", "%20") if scheme in ("http", "https", "mailto") else ""


def _language(attributes: Attributes) -> str:
    found = _LANGUAGE.search(attributes.get("class", ""))
    return found[1] if found else ""


def _tidy(text: str) -> str:
    return re.sub(r" *\n *", "\n", re.sub(r" {2,}", " ", text)).strip()


def _is_item(line: str) -> bool:
    return bool(re.match(r"(?:> )* *(?:- |\d+\. )", line))
