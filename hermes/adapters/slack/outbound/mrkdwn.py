"""Conversion of Markdown, as models write it, to Slack's mrkdwn.

`&`, `<` and `>` are escaped everywhere, so that no text can notify people (`<!here>`).
"""

from __future__ import annotations

from collections.abc import Iterator

from markdown_it.tree import SyntaxTreeNode

from hermes.adapters.chat.markdown import MarkdownWriter

_MARKS = {"strong": "*", "em": "_", "s": "~"}
_LINK_SCHEMES = ("http://", "https://", "mailto:", "tel:", "slack://")
_JOINT = "\u200b"  # zero-width space: Slack recognises a mark only at a word boundary


def to_mrkdwn(text: str) -> str:
    return _Writer(text).write()


def escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class _Writer(MarkdownWriter):
    code_mark = "```"
    _bold = False  # inside bold text: Slack has no nested bold

    def _escape(self, text: str) -> str:
        return escape(text)

    def _heading(self, node: SyntaxTreeNode) -> str:
        self._bold = True
        inner = self._line(node)
        self._bold = False
        return f"*{inner}*" if inner.strip() else inner

    def _quotation(self, node: SyntaxTreeNode) -> str:
        return "\n".join(f"> {line}" for line in self._blocks(node.children).split("\n"))

    def _code(self, content: str, language: str) -> str:  # noqa: ARG002 - Slack has no languages
        inner = escape(content.rstrip("\n")).replace("```", f"`{_JOINT}``")
        return f"```\n{inner}\n```"

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


def _link(address: str, shown: str) -> str:
    """Return a link if Slack supports its scheme, else the text and the address."""
    if not address.startswith(_LINK_SCHEMES):
        return f"{shown} ({escape(address)})" if shown else escape(address)
    target = escape(address).replace("|", "%7C")
    label = shown.replace("|", "¦").replace("\n", " ")
    return f"<{target}|{label}>" if label and label != target else f"<{target}>"
