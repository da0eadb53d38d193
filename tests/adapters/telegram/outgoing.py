"""Something to say there."""

from __future__ import annotations

from hermes.domain.ids import TurnId
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.source import Place


def outgoing(
    text: str = "", *, chat: int = 7, thread: str = "", message: str = "", choices: tuple[str, ...] = ()
) -> OutboxMessage:
    return OutboxMessage(
        id=f"reply:{chat}:{text[:9]}",
        kind=OutboxKind.QUESTION if choices else OutboxKind.REPLY,
        place=Place(platform="telegram", chat=str(chat), thread=thread, message=message),
        text=text,
        at=0.0,
        turn=TurnId("turn-1"),
        call="call-1",
        choices=choices,
    )
