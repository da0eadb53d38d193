"""Scan of a text that would become a standing instruction: a note of the memory, or a skill. Pure.

It finds orders against the person that are harmless in a page, but not in a text that every conversation begins with.
"""

from __future__ import annotations

import re
from typing import Final

from hermes.domain.text.injection import suspicion

_ORDERS: Final = (
    (
        r"\b(always|must|first|before anything)\b.{0,80}\b(send|post|upload|forward"
        r"|report)\b.{0,80}\b(to|at)\s+https?://"
    ),
    (
        r"\bsend\b.{0,60}\b(conversation|history|transcript|messages|files?|memory"
        r"|prompt)\b.{0,60}\bto\b.{0,40}(https?://|@\w+\.\w)"
    ),
    r"\b(never|do not|don't)\b.{0,30}\b(mention|reveal|disclose|show)\b.{0,40}\b(this|these|skill|instruction|step)",
    r"\b(pretend|act as if|claim)\b.{0,60}\b(approved|authori[sz]ed|permission|owner|admin)\b",
    r"\b(without|skip|no need for|bypass|avoid)\b.{0,20}\b(asking|approval|confirmation|permission)\b",
    r"\b(owner|admin|user|person)\b.{0,40}\b(has|have)\b.{0,20}\bapproved\b.{0,30}\b(all|any|every)\b",
    (
        r"\byou are now\b|\bnew system prompt\b|\bdeveloper mode\b|<\s*/?\s*system\s*>"
        r"|^\s*#+\s*system\s*(prompt|message)\b|^\s*system\s*:"
    ),
    (
        r"\b(override|replace|supersede)s?\b.{0,30}\b(all|any|other|previous"
        r"|system)\b.{0,20}\b(rules?|instructions?|prompts?)\b"
    ),
)
_LEAK: Final = r"!\[[^\]]*\]\(https?://[^)]*[?&=/]\s*(\{|\$|<|%7b)"  # a picture whose address carries data


def is_order(line: str) -> bool:
    """Return whether a line gives orders against the person."""
    return any(re.search(pattern, line, re.IGNORECASE) for pattern in _ORDERS)


def note_suspicion(text: str) -> str:
    """Return why this text must not become a note; empty if nothing was found."""
    if reason := suspicion(text):
        return reason
    lines = [*text.splitlines(), " ".join(text.split())]
    if any(map(is_order, lines)):
        return "it gives orders that a person should give or approve each time"
    return "it leaks data through a picture" if re.search(_LEAK, text, re.IGNORECASE) else ""
