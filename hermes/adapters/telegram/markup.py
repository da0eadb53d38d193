"""Conversion of Markdown, as models write it, to Telegram's HTML.

HTML in the text is escaped. If the result would be blank or too long, the text is sent as plain text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from markdown_it.tree import SyntaxTreeNode

from hermes.adapters.chat.markdown import MarkdownWriter
from hermes.adapters.chat.utf16 import units
from hermes.adapters.telegram.parts import LIMIT

_TAGS = {"strong": "b", "em": "i", "s": "s"}
_LINK_SCHEMES = ("http://", "https://", "tg://", "mailto:", "tel:")


def to_html(text: str) -> str:
    """Return the text with Telegram's tags; empty if it has to be sent as plain text."""
    shown = _Writer(text).write()
    visible = html.unescape(re.sub(r"<[^>]*>", "", shown))
    return shown if visible.strip() and units(visible) <= LIMIT else ""


def _escape(text: str) -> str:
    return html.escape(text, quote=False)


class _Writer(MarkdownWriter):
    code_mark = "<pre>"
    _quoting = False  # inside a quotation: Telegram has no nested quotes

    def _escape(self, text: str) -> str:
        return _escape(text)

    def _heading(self, node: SyntaxTreeNode) -> str:
        return f"<b>{self._line(node)}</b>"

    def _quotation(self, node: SyntaxTreeNode) -> str:
        if self._quoting:
            return self._blocks(node.children)
        self._quoting = True
        inner = self._blocks(node.children)
        self._quoting = False
        return f"<blockquote>{inner}</blockquote>"

    def _code(self, content: str, language: str) -> str:
        inner = _escape(content.rstrip("\n"))
        if language:
            return f'<pre><code class="language-{html.escape(language)}">{inner}</code></pre>'
        return f"<pre>{inner}</pre>"

    def _joined(self, nodes: Iterator[SyntaxTreeNode]) -> str:
        return "".join(self._inline(node) for node in nodes)

    def _inline(self, node: SyntaxTreeNode) -> str:
        inner = self._joined(iter(node.children or ()))
        match node.type:
            case "softbreak" | "hardbreak":
                return "\n"
            case "code_inline":
                return f"<code>{_escape(node.content)}</code>"
            case "strong" | "em" | "s":
                tag = _TAGS[node.type]
                return f"<{tag}>{inner}</{tag}>"
            case "link":
                return _link(str(node.attrs["href"]), inner)
            case "image":
                return _link(str(node.attrs["src"]), inner or _escape(node.content))
        return inner or _escape(node.content)


def _link(address: str, shown: str) -> str:
    """Return a link if Telegram supports its scheme, else the text and the address."""
    if not address.startswith(_LINK_SCHEMES):
        return f"{shown} ({_escape(address)})" if shown else _escape(address)
    return f'<a href="{html.escape(address)}">{shown or _escape(address)}</a>'
