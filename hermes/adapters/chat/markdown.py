"""Markdown parser and block traversal that all chat platforms share."""

from __future__ import annotations

import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode


@functools.cache
def _parser() -> MarkdownIt:
    # No link references: a definition would disappear from one part and be missing in the next.
    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    made.disable(["reference", "html_block", "html_inline"])
    made.parse("*a*")  # builds its rules on first use, which is not thread-safe
    return made


class MarkdownWriter(ABC):
    """Conversion of one Markdown text to the notation of a platform.

    Elements without a notation are written out: lists with their marks, headings in bold, tables as typed.
    """

    code_mark: ClassVar[str]  # found in every code block, whose lines are never indented

    def __init__(self, text: str) -> None:
        text = re.sub(r"\r\n?", "\n", text)  # as the parser counts lines
        self._lines = text.split("\n")
        self._root = SyntaxTreeNode(_parser().parse(text))

    def write(self) -> str:
        return self._blocks(self._root.children).strip("\n")

    def _blocks(self, nodes: list[SyntaxTreeNode]) -> str:
        """Render blocks, with an empty line between them where the source has one."""
        result = ""
        end = None
        for node in nodes:
            first, last = node.map or (0, 0)
            if end is not None:
                result += "\n\n" if self._has_gap(end, first) else "\n"
            end = last
            result += self._block(node)
        return result

    def _has_gap(self, end: int, first: int) -> bool:
        """Return True if an empty line precedes the block. A list's source range includes the lines after it."""
        return first > end or (first > 0 and not self._lines[first - 1].strip(" >"))

    def _block(self, node: SyntaxTreeNode) -> str:
        match node.type:
            case "heading":
                return self._heading(node)
            case "fence" | "code_block":
                return self._code(node.content, node.info.split(" ")[0] if node.info else "")
            case "blockquote":
                return self._quotation(node)
            case "bullet_list" | "ordered_list":
                return self._blocks(node.children)
            case "list_item":
                return self._list_item(node)
            case "hr":
                return "———"
            case "table":
                first, last = node.map or (0, 0)
                return self._code("\n".join(self._lines[first:last]), "")
        return self._line(node) if node.children else self._escape(node.content)

    def _list_item(self, item: SyntaxTreeNode) -> str:
        mark = "•"
        if item.parent is not None and item.parent.type == "ordered_list":
            number = int(item.parent.attrs.get("start", 1)) + item.parent.children.index(item)
            mark = f"{number}{item.markup or '.'}"
        block = self._blocks(item.children)
        indented = block if self.code_mark in block else block.replace("\n", "\n  ")
        return f"{mark} {indented}"

    def _line(self, node: SyntaxTreeNode) -> str:
        return self._joined(child for outer in node.children for child in _leaves(outer))

    @abstractmethod
    def _escape(self, text: str) -> str: ...

    @abstractmethod
    def _heading(self, node: SyntaxTreeNode) -> str: ...

    @abstractmethod
    def _code(self, content: str, language: str) -> str: ...

    @abstractmethod
    def _quotation(self, node: SyntaxTreeNode) -> str: ...

    @abstractmethod
    def _joined(self, nodes: Iterator[SyntaxTreeNode]) -> str:
        """Render inline elements."""


def _leaves(node: SyntaxTreeNode) -> Iterator[SyntaxTreeNode]:
    if node.type == "inline":
        yield from node.children
    else:
        yield node
