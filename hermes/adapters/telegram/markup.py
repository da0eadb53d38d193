"""Conversion of Markdown, as models write it, to Telegram's HTML.

Elements without a tag are written out: lists with their marks, headings in bold, tables as typed. HTML in the text is
escaped. If the result would be blank or too long, the text is sent as plain text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from markdown_it.tree import SyntaxTreeNode

from hermes.adapters.chat.markdown import BlockWriter, parser
from hermes.adapters.chat.utf16 import units
from hermes.adapters.telegram.parts import LIMIT

_INLINE = {"strong": "b", "em": "i", "s": "s"}
_LINK_SCHEMES = ("http://", "https://", "tg://", "mailto:", "tel:")


def to_html(text: str) -> str:
    """Return the text with Telegram's tags; empty if it has to be sent as plain text."""
    text = re.sub(r"\r\n?", "\n", text)  # as the parser counts lines
    root = SyntaxTreeNode(parser().parse(text))
    shown = _Writer(text.split("\n")).blocks(root.children).strip("\n")
    visible = html.unescape(re.sub(r"<[^>]*>", "", shown))
    return shown if visible.strip() and units(visible) <= LIMIT else ""


class _Writer(BlockWriter):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(lines)
        self._quoting = False  # Telegram has no nested quotes

    def _block(self, node: SyntaxTreeNode) -> str:
        match node.type:
            case "paragraph":
                return self.inline(node)
            case "heading":
                return f"<b>{self.inline(node)}</b>"
            case "fence" | "code_block":
                return _code(node.content, node.info.split(" ")[0] if node.info else "")
            case "blockquote":
                return self._quotation(node)
            case "bullet_list" | "ordered_list":
                return self._list(node)
            case "hr":
                return "———"
            case "table":
                first, last = node.map or (0, 0)
                return _code("\n".join(self._lines[first:last]), "")
        return self.inline(node) if node.children else html.escape(node.content, quote=False)

    def _quotation(self, node: SyntaxTreeNode) -> str:
        if self._quoting:
            return self.blocks(node.children)
        self._quoting = True
        inner = self.blocks(node.children)
        self._quoting = False
        return f"<blockquote>{inner}</blockquote>"

    def _list(self, node: SyntaxTreeNode) -> str:
        result = ""
        end = None
        number = int(node.attrs.get("start", 1)) if node.type == "ordered_list" else None
        for item in node.children:
            first, last = item.map or (0, 0)
            if end is not None:
                result += "\n\n" if self._gap(end, first) else "\n"
            end = last
            mark = "•" if number is None else f"{number}{item.markup or '.'}"
            number = None if number is None else number + 1
            result += f"{mark} {_indented(self.blocks(item.children))}"
        return result

    def inline(self, node: SyntaxTreeNode) -> str:
        return "".join(self._inline(child) for outer in node.children for child in _leaves(outer))

    def _inline(self, node: SyntaxTreeNode) -> str:
        inner = "".join(self._inline(child) for child in node.children or ())
        match node.type:
            case "softbreak" | "hardbreak":
                return "\n"
            case "code_inline":
                return f"<code>{html.escape(node.content, quote=False)}</code>"
            case "strong" | "em" | "s":
                tag = _INLINE[node.type]
                return f"<{tag}>{inner}</{tag}>"
            case "link":
                return _link(str(node.attrs["href"]), inner)
            case "image":
                return _link(str(node.attrs["src"]), inner or html.escape(node.content, quote=False))
        return inner or html.escape(node.content, quote=False)


def _leaves(node: SyntaxTreeNode) -> Iterator[SyntaxTreeNode]:
    if node.type == "inline":
        yield from node.children
    else:
        yield node


def _link(address: str, shown: str) -> str:
    """Return a link if Telegram supports its scheme, else the text and the address."""
    if not address.startswith(_LINK_SCHEMES):
        return f"{shown} ({html.escape(address, quote=False)})" if shown else html.escape(address, quote=False)
    return f'<a href="{html.escape(address)}">{shown or html.escape(address, quote=False)}</a>'


def _code(content: str, language: str) -> str:
    inner = html.escape(content.rstrip("\n"), quote=False)
    if language:
        return f'<pre><code class="language-{html.escape(language)}">{inner}</code></pre>'
    return f"<pre>{inner}</pre>"


def _indented(block: str) -> str:
    """Indent the lines below a list item's first line."""
    return block.replace("\n", "\n  ") if "<pre>" not in block else block
