"""Facts of a running turn: text, tool calls, questions, notices.

They are made from the stream of the API (`of_stream`) or from the events of the daemon (`of_event`), whose names
differ. Unknown events are ignored: the daemon may be newer than this program.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, TypeAlias

from hermes.domain.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDiscarded:
    """Discard the text since the last tool call: it was cut off and comes again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallBegan:
    call: str
    name: str
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallProgress:
    call: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallEnded:
    call: str
    name: str
    outcome: str
    took_s: float
    summary: str = ""  # of a call that never started, so that no ToolCallBegan described it


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionShown:
    """The turn waits for a person."""

    call: str
    name: str
    question: str
    choices: tuple[str, ...]
    approval: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SteeringTaken:
    """A message typed meanwhile is part of this turn now."""

    turn: str  # id of the merged message's own turn


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeShown:
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quiet:
    """No event arrived during one poll."""


Fact: TypeAlias = (
    Text
    | TextDiscarded
    | ToolCallBegan
    | ToolCallProgress
    | ToolCallEnded
    | QuestionShown
    | SteeringTaken
    | NoticeShown
    | Quiet
)


def of_stream(event: str, fields: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield the facts of an event in the stream of the API."""
    match event:
        case "hermes.tool.started":
            yield ToolCallBegan(call=fields["call_id"], name=fields["name"], summary=str(fields.get("summary") or ""))
        case "hermes.tool.progress":
            yield ToolCallProgress(call=fields["call_id"], text=str(fields["text"]))
        case "hermes.tool.completed":
            yield ToolCallEnded(
                call=fields["call_id"],
                name=fields["name"],
                outcome=str(fields["outcome"]),
                took_s=float(fields.get("took_s") or 0.0),
                summary=str(fields.get("summary") or ""),
            )
        case "hermes.approval.request" | "hermes.question":
            yield QuestionShown(
                call=fields["call_id"],
                name=fields["name"],
                question=str(fields["question"]),
                choices=tuple(map(str, fields.get("choices") or ())),
                approval=event == "hermes.approval.request",
            )
        case "hermes.steered":
            yield SteeringTaken(turn=str(fields["message_turn_id"]))
        case "hermes.message.reset":
            yield TextDiscarded()
        case "hermes.notice":
            yield NoticeShown(text=str(fields["text"]))
        case _:
            pass


def of_event(event: str, fields: Mapping[str, Any]) -> Iterator[Fact]:
    """Yield the facts of an event that the daemon publishes."""
    match event:
        case "call_began":
            yield ToolCallBegan(call=fields["call"], name=fields["name"], summary=fields["summary"])
        case "call_progress":
            yield ToolCallProgress(call=fields["call"], text=fields["text"])
        case "call_ended":
            yield ToolCallEnded(
                call=fields["call"],
                name=fields["name"],
                outcome=fields["outcome"],
                took_s=fields["took_s"],
                summary=str(fields.get("summary") or ""),
            )
        case "call_asked":
            yield QuestionShown(
                call=fields["call"],
                name=fields["name"],
                question=fields["question"],
                choices=tuple(fields["choices"]),
                approval=fields["approval"],
            )
        case "steered":
            yield SteeringTaken(turn=fields["message"])
        case "notice":
            yield NoticeShown(text=fields["text"])
        case _:
            pass


def gist(arguments: str) -> str:
    """Return a summary of a call: its only argument if that is text, else all arguments."""
    try:
        given = json.loads(arguments)
    except ValueError:
        return arguments
    values = list(given.values()) if isinstance(given, dict) else []
    return values[0] if len(values) == 1 and isinstance(values[0], str) else arguments
