"""Conversion of Markdown, as models write it, to Slack's mrkdwn.

Elements without a notation are written out: lists with their marks, headings in bold, tables as typed. `&`, `<` and
`>` are escaped everywhere, so that no text can notify people (`<!here>`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from markdown_it.tree import SyntaxTreeNode

from hermes.adapters.chat.markdown import BlockWriter, parser

_MARKS = {"strong": "*", "em": "_", "s": "~"}
_LINK_SCHEMES = ("http://", "https://", "mailto:", "tel:", "slack://")
_JOINT = "\u200b"  # zero-width space: Slack recognises a mark only at a word boundary


def to_mrkdwn(text: str) -> str:
    text = re.sub(r"\r\n?", "\n", text)  # as the parser counts lines
    root = SyntaxTreeNode(parser().parse(text))
    return _Writer(text.split("\n")).blocks(root.children).strip("\n")


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class _Writer(BlockWriter):
    def __init__(self, lines: list[str]) -> None:
        super().__init__(lines)
        self._bold = False  # Slack has no nested bold

    def _block(self, node: SyntaxTreeNode) -> str:
        match node.type:
            case "paragraph":
                return self._line(node)
            case "heading":
                return self._heading(node)
            case "fence" | "code_block":
                return _code(node.content)
            case "blockquote":
                return "\n".join(f"> {line}" for line in self.blocks(node.children).split("\n"))
            case "bullet_list" | "ordered_list":
                return self._list(node)
            case "hr":
                return "———"
            case "table":
                first, last = node.map or (0, 0)
                return _code("\n".join(self._lines[first:last]))
        return self._line(node) if node.children else escape(node.content)

    def _heading(self, node: SyntaxTreeNode) -> str:
        self._bold = True
        inner = self._line(node)
        self._bold = False
        return f"*{inner}*" if inner.strip() else inner

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

    def _line(self, node: SyntaxTreeNode) -> str:
        return self._joined(child for outer in node.children for child in _leaves(outer))

    def _joined(self, nodes: Iterator[SyntaxTreeNode]) -> str:
        result = ""
        after_mark = False
        for node in nodes:
            piece = self._inline(node)
            marked = node.type in {*_MARKS, "code_inline"}
            if (marked and result[-1:].isalnum()) or (after_mark and piece[:1].isalnum()):
                result += _JOINT
            result += piece
            after_mark = marked
        return result

    def _inline(self, node: SyntaxTreeNode) -> str:
        match node.type:
            case "softbreak" | "hardbreak":
                return "\n"
            case "code_inline":
                return f"`{escape(node.content)}`"
            case "strong" | "em" | "s":
                return self._marked(node)
            case "link":
                return _link(str(node.attrs["href"]), self._joined(iter(node.children)))
            case "image":
                return _link(str(node.attrs["src"]), escape(node.content))
        return self._joined(iter(node.children)) if node.children else escape(node.content)

    def _marked(self, node: SyntaxTreeNode) -> str:
        if node.type == "strong" and self._bold:
            return self._joined(iter(node.children))
        bold = self._bold
        self._bold = bold or node.type == "strong"
        inner = self._joined(iter(node.children))
        self._bold = bold
        mark = _MARKS[node.type]
        # A mark does not span lines.
        return "\n".join(f"{mark}{line}{mark}" if line.strip() else line for line in inner.split("\n"))


def _leaves(node: SyntaxTreeNode) -> Iterator[SyntaxTreeNode]:
    if node.type == "inline":
        yield from node.children
    else:
        yield node


def _link(address: str, shown: str) -> str:
    """Return a link if Slack supports its scheme, else the text and the address."""
    if not address.startswith(_LINK_SCHEMES):
        return f"{shown} ({escape(address)})" if shown else escape(address)
    target = escape(address).replace("|", "%7C")
    label = shown.replace("|", "¦").replace("\n", " ")
    return f"<{target}|{label}>" if label and label != target else f"<{target}>"


def _code(content: str) -> str:
    inner = escape(content.rstrip("\n")).replace("```", f"`{_JOINT}``")
    return f"```\n{inner}\n```"


def _indented(block: str) -> str:
    """Indent the lines below a list item's first line."""
    return block.replace("\n", "\n  ") if "```" not in block else block
