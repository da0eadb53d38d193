"""Something to say there."""

from __future__ import annotations

from hermes.types import Obligation, Owed, Place, TurnId
from tests.slack_world import TEAM


def owed(
    text: str = "",
    *,
    chat: str = f"{TEAM}.D1",
    thread: str = "",
    message: str = "",
    choices: tuple[str, ...] = (),
    sent: tuple[str, ...] = (),
    final: bool = True,
) -> Obligation:
    return Obligation(
        id=f"reply:{chat}:{text[:9]}",
        kind=Owed.QUESTION if choices else Owed.REPLY,
        place=Place(platform="slack", chat=chat, thread=thread, message=message),
        text=text,
        at=0.0,
        turn=TurnId("turn-1"),
        call="call-1",
        choices=choices,
        sent=sent,
        final=final,
    )
