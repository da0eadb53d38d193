"""HTML pages as Markdown for the model.

Rules:
- Text that a reader of the page cannot see is dropped: scripts, styles, hidden elements, and the page's furniture
  (navigation, sidebars, footers, forms). When the page marks its main part, only that part is shown.
- No page is refused. Elements nested deeper than the library's limit of 1,024 are dropped.
- Nothing is fetched, and nothing is run.
"""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING, Any, Final, cast

import html_to_markdown

if TYPE_CHECKING:
    from html_to_markdown import NodeContext

_DROPPED: Final = [
    *(
        "script",
        "style",
        "noscript",
        "template",
        "svg",
        "math",
        "iframe",
        "object",
        "embed",
        "canvas",
        "audio",
        "video",
    ),
    *("nav", "aside", "footer", "button", "select", "textarea", "datalist", "dialog", "menu"),
    *('[role="navigation"]', '[role="banner"]', '[role="contentinfo"]', '[role="search"]', '[role="complementary"]'),
    *('[role="menu"]', '[role="menubar"]', '[role="dialog"]', '[aria-hidden="true"]'),
    *("a.headerlink", "a.anchor"),  # the sign beside a heading that links to it
]
_TITLE: Final = re.compile(r"<title[^>]{0,200}>([^<]{0,1000})", re.IGNORECASE)
_MIN_MAIN_CHARS: Final = 200  # a shorter main part is taken for an empty frame, and the whole page is shown


def readable(html: str, url: str) -> tuple[str, str]:
    """Return the page's title and its text. Relative links are resolved against `url`."""
    main = _MainPart()
    options = html_to_markdown.ConversionOptions(
        autolinks=False,
        base_url=url,
        bullets="-",
        compact_tables=True,
        exclude_selectors=_DROPPED,
        extract_metadata=False,
        inline_data_media="alt_text_only",
    )
    whole = html_to_markdown.convert(html, options, cast("Any", main)).content or ""
    title = _TITLE.search(html)
    text = main.text if len(main.text) >= _MIN_MAIN_CHARS else whole
    return " ".join(unescape(title[1]).split()) if title else "", text.strip()


class _MainPart:
    """Visitor that keeps the text of the page's first main element."""

    def __init__(self) -> None:
        self.text = ""

    def visit_element_end(self, context: NodeContext, output: str) -> None:
        if context.tag_name == "main" and not self.text:
            self.text = output
