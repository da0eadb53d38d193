"""How the model is shown one message of a person, and in a shared conversation who wrote it. Pure.

Everything that the person did not write is fenced (fence.py): quotations, forwards, names. In a conversation that
people share, each text begins with its writer's name in brackets. Nobody can forge such a label: a bracket with which
a person begins a line gets a backslash.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from hermes.domain.fence import fenced
from hermes.domain.types import ChatContext
from hermes.ports.chat import Foreign, ForeignKind, Inbound

_NAME_MAX_CHARS = 40
_FORWARD_MAX_CHARS = 16_000
_THREAD_MAX_CHARS = 64_000
_MENTION_MAX_CHARS = 80
_LIKE_A_NAME = re.compile(r"^([^\S\n]*)(?=\[)", re.MULTILINE)
_BREAKS = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")  # that a model may take for a line's end
_LABELS: Mapping[ForeignKind, str] = {
    ForeignKind.QUOTE: "in answer to",
    ForeignKind.OWN_QUOTE: "in answer to what you said",
    ForeignKind.THREAD: "earlier in this thread",
    ForeignKind.FORWARD: "forwarded message",
    ForeignKind.STICKER: "sticker",
    ForeignKind.CONTACT: "contact",
    ForeignKind.LOCATION: "location",
    ForeignKind.POLL: "poll",
}
_MAX_CHARS: Mapping[ForeignKind, int] = {
    ForeignKind.FORWARD: _FORWARD_MAX_CHARS,
    ForeignKind.THREAD: _THREAD_MAX_CHARS,
}


def as_shown(inbound: Inbound, *, shared: bool, marker: str) -> Inbound:
    """With the text that a model is shown: what others wrote, then who speaks, then their own words."""
    words = _with_mentions(guarded(inbound.text) if shared else inbound.text, inbound, marker)
    if shared:
        words = f"{named(inbound, marker)} {words}".rstrip()
    parts = (*(_shown(each, marker) for each in inbound.foreign), words)
    return replace(inbound, text="\n".join(filter(None, parts)))


def named(inbound: Inbound, marker: str) -> str:
    """The fenced name in brackets, or the platform's id of somebody who has none."""
    return f"[{fenced(shown_name(inbound) or inbound.user, marker)}]"


def shown_name(inbound: Inbound) -> str:
    """The person's name without brackets and what cannot be seen; empty: they have none."""
    visible = "".join(each if each.isprintable() and each not in "[]" else " " for each in inbound.user_name)
    return " ".join(visible.split())[:_NAME_MAX_CHARS].strip()


def company_of(inbound: Inbound, *, shared: bool) -> ChatContext:
    known = inbound.user_name if inbound.user_name != inbound.user else ""
    return ChatContext(kind=inbound.chat_type, chat=inbound.chat_name, person="" if shared else known, shared=shared)


def guarded(text: str) -> str:
    """No line but the first begins with a bracket."""
    first, line_end, others = _BREAKS.sub("\n", text).partition("\n")
    return f"{first}{line_end}{_LIKE_A_NAME.sub(_escaped, others)}"


def _shown(foreign: Foreign, marker: str) -> str:
    label = _LABELS[foreign.kind]
    if foreign.by:
        label += f" by {fenced(' '.join(foreign.by.split()), marker, max_chars=_MENTION_MAX_CHARS)}"
    if not foreign.text.strip():
        return f"[{label}]"
    most = _MAX_CHARS.get(foreign.kind)
    body = fenced(foreign.text, marker) if most is None else fenced(foreign.text, marker, max_chars=most)
    return f"[{label}: {body}]"


def _with_mentions(text: str, inbound: Inbound, marker: str) -> str:
    names = {
        each: fenced(name, marker, max_chars=_MENTION_MAX_CHARS) for each, name in inbound.mentions if name != each
    }
    if not names:
        return text
    return re.sub(rf"@({'|'.join(map(re.escape, names))})\b", lambda found: f"@{names[found[1]]}", text)


def _escaped(found: re.Match[str]) -> str:
    return f"{found[1]}\\"
