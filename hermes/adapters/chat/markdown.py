"""Markdown parser and block traversal that all chat platforms share."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from markdown_it import MarkdownIt

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode


@functools.cache
def parser() -> MarkdownIt:
    # No link references: a definition would disappear from one part and be missing in the next.
    made = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    made.disable(["reference", "html_block", "html_inline"])
    made.parse("*a*")  # builds its rules on first use, which is not thread-safe
    return made


class BlockWriter(ABC):
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines

    def blocks(self, nodes: list[SyntaxTreeNode]) -> str:
        """Render blocks, with an empty line between them where the source has one."""
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
        """Return True if an empty line precedes the block. A list's source range includes the lines after it."""
        return first > end or (first > 0 and not self._lines[first - 1].strip(" >"))

    @abstractmethod
    def _block(self, node: SyntaxTreeNode) -> str: ...
