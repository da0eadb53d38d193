from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.domain.ids import TurnId
from hermes.domain.records import BadRecord, Ended, MessageReceived, TurnFinished, TurnStarted
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.search.indexed_text import MessageText, texts_of


def encoded(role: str, content: Any) -> EncodedMessage:
    return EncodedMessage(json.dumps({"role": role, "content": content}).encode())


def received(*messages: EncodedMessage) -> MessageReceived:
    return MessageReceived(at=5.0, turn=TurnId("t"), messages=messages, source=Source(platform="slack"))


def test_of_what_came_in_only_the_last_message_is_new() -> None:
    record = received(encoded("user", "old"), encoded("assistant", "older"), encoded("user", "new"))
    assert texts_of(record) == (MessageText(role="user", text="new", at=5.0, platform="slack"),)


def test_an_answer_is_what_the_assistant_said() -> None:
    record = TurnFinished(
        at=6.0, turn=TurnId("t"), message=encoded("assistant", " yes "), model="m", finish_reason="stop"
    )
    assert texts_of(record) == (MessageText(role="assistant", text="yes", at=6.0),)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:"}}, "b"], "a\nb"),
        ([{"type": "text", "text": None}, 7, {"text": "c"}], "c"),
    ],
)
def test_parts_with_text_count(content: Any, text: str) -> None:
    [said] = texts_of(received(encoded("user", content)))
    assert said.text == text


@pytest.mark.parametrize(
    "record",
    [
        received(),
        received(encoded("user", "  ")),
        received(encoded("user", None)),
        received(EncodedMessage(b"\xff not json")),
        received(EncodedMessage(b"[1]")),
        TurnStarted(at=1.0, turn=TurnId("t"), attempt=1),
        Ended(at=1.0, reason="reset"),
        BadRecord(problem="checksum"),
    ],
)
def test_everything_else_says_nothing(record: Any) -> None:
    assert texts_of(record) == ()
