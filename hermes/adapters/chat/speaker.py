"""Who says what: how the model is shown the words of one of several people. Pure.

In a conversation that people share, each text begins with its writer's name in brackets. Nobody else's name can be
written there: names lose their brackets and whatever cannot be seen, and a bracket with which a person begins a line
gets a backslash.
"""

from __future__ import annotations

import re
from dataclasses import replace

from hermes.ports.chat import Inbound
from hermes.types import Company

_MOST_NAME = 40  # characters
_LIKE_A_NAME = re.compile(r"^([^\S\n]*)(?=\[)", re.MULTILINE)
_BREAKS = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")  # that a model may take for a line's end


def as_shown(inbound: Inbound, *, shared: bool) -> Inbound:
    """With the text that a model is shown: what it answers, then who speaks, then their words."""
    if not shared:
        return replace(inbound, text=inbound.before + inbound.text, before="")
    words = guarded(f"{named(inbound)} {inbound.text}".rstrip())
    return replace(inbound, text=guarded(inbound.before) + words, before="")


def named(inbound: Inbound) -> str:
    """The name in brackets, or the platform's id of somebody who has none."""
    return f"[{shown_name(inbound) or inbound.user}]"


def shown_name(inbound: Inbound) -> str:
    """The person's name without brackets and what cannot be seen; empty: they have none."""
    visible = "".join(each if each.isprintable() and each not in "[]" else " " for each in inbound.user_name)
    return " ".join(visible.split())[:_MOST_NAME].strip()


def company_of(inbound: Inbound, *, shared: bool) -> Company:
    known = inbound.user_name if inbound.user_name != inbound.user else ""
    return Company(kind=inbound.chat_type, chat=inbound.chat_name, person="" if shared else known, shared=shared)


def guarded(text: str) -> str:
    """No line but the first begins with a bracket."""
    first, line_end, others = _BREAKS.sub("\n", text).partition("\n")
    return f"{first}{line_end}{_LIKE_A_NAME.sub(_escaped, others)}"


def _escaped(found: re.Match[str]) -> str:
    return f"{found[1]}\\"
