"""Something to say there."""

from __future__ import annotations

from hermes.types import Obligation, Owed, Place, TurnId


def owed(
    text: str = "", *, chat: int = 7, thread: str = "", message: str = "", choices: tuple[str, ...] = ()
) -> Obligation:
    return Obligation(
        id=f"reply:{chat}:{text[:9]}",
        kind=Owed.QUESTION if choices else Owed.REPLY,
        place=Place(platform="telegram", chat=str(chat), thread=thread, message=message),
        text=text,
        at=0.0,
        turn=TurnId("turn-1"),
        call="call-1",
        choices=choices,
    )
