"""What a button carries on each platform leads back to what it was offered for."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.adapters.slack.outbound import blocks
from hermes.adapters.telegram import keyboard
from hermes.domain.access.question import button_token, command_token, token_of
from hermes.domain.ids import SessionKey, TurnId
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.source import Place
from hermes.services.commands.registry import COMMANDS

LONGEST = max((command.name for command in COMMANDS), key=len)
COMMAND = {"call": command_token(LONGEST, SessionKey("agent:main:x:dm:1"), "1")}
QUESTION = {"turn": TurnId("t"), "call": "c"}


def offering(**more: Any) -> OutboxMessage:
    place = Place(platform="x", chat="1")
    return OutboxMessage(
        id="o", kind=OutboxKind.NOTICE, place=place, text="which?", at=0.0, choices=("one", "two"), **more
    )


@pytest.mark.parametrize("about", [COMMAND, QUESTION])
def test_a_button_leads_back_to_its_offer(about: dict[str, Any]) -> None:
    offered = offering(**about)
    markup = keyboard.keyboard(offered)
    assert markup is not None
    data = str(markup.inline_keyboard[1][0].callback_data)
    assert len(data.encode()) <= 64
    assert keyboard.pressed(data) == (token_of(offered), 1)
    button = blocks.blocks(offered, "which?", last=True)[1]["elements"][1]
    assert blocks.pressed(button["value"]) == (token_of(offered), 1, "two")


def test_buttons_of_one_person_are_no_other_persons() -> None:
    key = SessionKey("agent:main:x:thread:1:2")
    assert command_token("model", key, "1") != command_token("model", key, "2")
    assert token_of(offering(**QUESTION)) == button_token(TurnId("t"), "c")


def test_an_offer_that_leads_nowhere_has_no_buttons() -> None:
    assert keyboard.keyboard(offering()) is None
    assert len(blocks.blocks(offering(), "which?", last=True)) == 1
