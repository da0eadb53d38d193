"""Meter of the context window: estimated tokens of each part of a model request. Pure.

A stored prompt is split at the headings that `build_prompt` writes. A file of a person with the same headings can
move the borders; the sum stays right.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hermes.agent.chat_message import read, text_tokens, tokens_of
from hermes.agent.prompt import FILE_ABOUT, RULES_HEADING, TOOLS_HEADING
from hermes.domain.read.context_report import ContextPart, PartSize
from hermes.domain.turn.message import EncodedMessage, MessageOrigin

_OPENINGS: Final = (
    (ContextPart.RULES, (RULES_HEADING,)),
    (ContextPart.GUIDANCE, (TOOLS_HEADING,)),
    (ContextPart.SKILLS, ("# Skills\n",)),
    (ContextPart.SURFACE, ("# Where you are\n",)),
    (ContextPart.MANNER, ("# Manner\n",)),
    (ContextPart.PROJECT, (f"\n{FILE_ABOUT}",)),
    (ContextPart.MEMORY, ("# Memory\nYour notes", "# About the person\nYour notes")),
)


def prompt_parts(text: str) -> Iterator[tuple[ContextPart, str]]:
    """Yield the parts of a stored prompt."""
    part, start = ContextPart.IDENTITY, 0
    for following, openings in _OPENINGS:
        found = [place for opening in openings if (place := _place(text, opening, start)) >= 0]
        if found:
            yield part, text[start : min(found)]
            part, start = following, min(found)
    last = text.rfind("\n\n# Now\n", start)
    if last >= 0:
        yield part, text[start:last]
        part, start = ContextPart.NOW, last
    yield part, text[start:]


def sizes(
    *,
    prompt: EncodedMessage | None,
    instructions: EncodedMessage,
    tools: bytes,
    messages: Sequence[EncodedMessage],
    origins: Sequence[MessageOrigin],
) -> tuple[PartSize, ...]:
    """Return the parts of a request that are not empty, in its order."""
    rows: dict[ContextPart, list[int]] = {}
    for part, text in prompt_parts(read(prompt).text) if prompt is not None else ():
        rows.setdefault(part, []).append(text_tokens(text))
    if instructions:
        rows[ContextPart.INSTRUCTIONS] = [tokens_of(instructions)]
    if tools:
        rows[ContextPart.TOOLS] = [text_tokens(json.dumps(each, ensure_ascii=False)) for each in json.loads(tools)]
    for part, tokens in _messages(messages, origins):
        rows.setdefault(part, []).append(tokens)
    return tuple(
        PartSize(part=part, tokens=sum(rows[part]), items=len(rows[part]))
        for part in ContextPart
        if sum(rows.get(part, ()))
    )


def _place(text: str, opening: str, start: int) -> int:
    """Return where the section with this opening begins, or -1."""
    if opening.startswith("\n"):  # its first line is the name of a file
        found = text.find(opening, start)
        return text.rfind("\n\n# ", start, found) if found >= 0 else -1
    return text.find(f"\n\n{opening}", start)


def _messages(
    messages: Iterable[EncodedMessage], origins: Iterable[MessageOrigin]
) -> Iterator[tuple[ContextPart, int]]:
    for message, origin in zip(messages, origins, strict=False):
        found = read(message)
        match found.role:
            case "assistant":
                part = ContextPart.ANSWERS
            case "tool":
                part = ContextPart.RESULTS
            case "user" if origin is MessageOrigin.PERSON:
                part = ContextPart.PEOPLE
            case _:
                part = ContextPart.NOTES
        yield part, found.tokens
