"""Markdown of messages as HTML. Raw HTML stays text, pictures stay links, and only web links are links."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markupsafe import Markup

MAX_CHARS = 20_000  # a longer message is shown as plain text: the time for hostile Markdown grows with its square
_LINK = re.compile(r"https?://|mailto:", re.IGNORECASE)


def message_html(text: str) -> Markup:
    """Return Markdown as HTML that is safe to show."""
    from markupsafe import Markup  # noqa: PLC0415 - comes with Jinja

    if len(text) > MAX_CHARS:
        return Markup("<pre>{}</pre>").format(text)  # format escapes
    return Markup(_parser().render(text))  # noqa: S704 - the parser escapes; see its options


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - for the first conversation only

    # No `html`: raw HTML stays text. No `image`: a page loads nothing from other hosts.
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table").disable("image")
    parser.validateLink = lambda url: bool(_LINK.match(url))  # type: ignore[method-assign]
    return parser
