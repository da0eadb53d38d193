"""Text to copy from a conversation: the last answer, and the code blocks in it."""

from __future__ import annotations

import re
from typing import Final

from hermes.tui.view_model import BlockKind, ChatView

_FENCE: Final = re.compile(
    r"^[ ]{0,3}(`{3,}|~{3,})[^\n]*\n(.*?)(?:^[ ]{0,3}\1[`~]*[ ]*$|\Z)", re.MULTILINE | re.DOTALL
)


def last_answer(view: ChatView) -> str:
    """Return the text of the last answer; empty if there is none."""
    return next((each.text for each in reversed(view.blocks) if each.kind is BlockKind.ANSWER), "")


def code_of(answer: str) -> list[str]:
    """Return the contents of the code blocks, in their order."""
    return [found.group(2).rstrip("\n") for found in _FENCE.finditer(answer)]
