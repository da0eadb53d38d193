"""Something to say there."""

from __future__ import annotations

from hermes.domain.ids import TurnId
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.source import Place
from tests.support.slack_state import TEAM


def outgoing(
    text: str = "",
    *,
    chat: str = f"{TEAM}.D1",
    thread: str = "",
    message: str = "",
    choices: tuple[str, ...] = (),
    sent: tuple[str, ...] = (),
    final: bool = True,
) -> OutboxMessage:
    return OutboxMessage(
        id=f"reply:{chat}:{text[:9]}",
        kind=OutboxKind.QUESTION if choices else OutboxKind.REPLY,
        place=Place(platform="slack", chat=chat, thread=thread, message=message),
        text=text,
        at=0.0,
        turn=TurnId("turn-1"),
        call="call-1",
        choices=choices,
        sent=sent,
        final=final,
    )
