"""A person's message as the model sees it, in shared conversations with the name of the writer. Pure.

Everything that the person did not write is fenced (fence.py): quotes, forwards, names. In a shared conversation each
text starts with its writer's name in brackets. A person cannot forge this label: a bracket at the start of a line
gets a backslash.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hermes.domain.source import ChatContext
from hermes.domain.text.fence import fenced
from hermes.domain.values import replace
from hermes.ports.chat import Foreign, ForeignKind, Inbound

_NAME_MAX_CHARS = 40
_FORWARD_MAX_CHARS = 16_000
_THREAD_MAX_CHARS = 64_000
_MENTION_MAX_CHARS = 80
_LINE_START_BRACKET = re.compile(r"^([^\S\n]*)(?=\[)", re.MULTILINE)
_BREAKS = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")  # line breaks that a model may recognise
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


def for_model(inbound: Inbound, *, shared: bool, marker: str) -> Inbound:
    """Return the message with the text for the model: foreign parts, then the speaker, then the person's text."""
    words = _with_mentions(escape_brackets(inbound.text) if shared else inbound.text, inbound, marker)
    if shared:
        words = f"{speaker_label(inbound, marker)} {words}".rstrip()
    parts = (*(_shown(each, marker) for each in inbound.foreign), words)
    return replace(inbound, text="\n".join(filter(None, parts)))


def speaker_label(inbound: Inbound, marker: str) -> str:
    """Return the fenced name in brackets, or the user id if there is no name."""
    return f"[{fenced(shown_name(inbound) or inbound.user, marker)}]"


def shown_name(inbound: Inbound) -> str:
    """Return the person's name without brackets and unprintable characters; may be empty."""
    visible = "".join(each if each.isprintable() and each not in "[]" else " " for each in inbound.user_name)
    return " ".join(visible.split())[:_NAME_MAX_CHARS].strip()


def chat_context_of(inbound: Inbound, *, shared: bool) -> ChatContext:
    known = inbound.user_name if inbound.user_name != inbound.user else ""
    return ChatContext(kind=inbound.chat_type, chat=inbound.chat_name, person="" if shared else known, shared=shared)


def escape_brackets(text: str) -> str:
    """Escape brackets at the start of all lines but the first."""
    first, line_end, others = _BREAKS.sub("\n", text).partition("\n")
    return f"{first}{line_end}{_LINE_START_BRACKET.sub(_escaped, others)}"


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
