"""Markdown as every chat platform reads it: the parser, and the way through its blocks. Their looks are its own."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode


@functools.cache
def parser() -> MarkdownIt:
    # Without references: a definition would vanish from one part and be missing in the next.
    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    made.disable(["reference", "html_block", "html_inline"])
    made.parse("*a*")  # it puts its rules together with the first text, which two threads must not do at once
    return made


class BlockWriter(ABC):
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def blocks(self, nodes: list[SyntaxTreeNode]) -> str:
        """One below the other, with an empty line where there was one."""
        result = ""
        end = None
        for node in nodes:
            first, last = node.map or (0, 0)
            if end is not None:
                result += "\n\n" if self._gap(end, first) else "\n"
            end = last
            result += self._block(node)
        return result

    def _gap(self, end: int, first: int) -> bool:
        """Whether an empty line stands before a block. Lists count those after them as their own."""
        return first > end or (first > 0 and not self._lines[first - 1].strip(" >"))

    @abstractmethod
    def _block(self, node: SyntaxTreeNode) -> str: ...
