"""What a conversation without a chat leaves behind is told to somebody."""

from __future__ import annotations

from dataclasses import replace

from hermes.actors.after_reset import AfterReset
from hermes.actors.session_protocol import Reset
from hermes.types import Place, Session, SessionId
from tests.actors.talk import FRESH
from tests.actors.world import until
from tests.journals import LoopJournal


async def test_only_what_has_no_chat_of_its_own_is_told_elsewhere() -> None:
    told: list[str] = []

    async def tell(session: Session, left: str) -> None:
        told.append(f"{session.id}: {left}")

    async def end(_: str) -> None:
        """There is none to end."""

    after = AfterReset(journal=LoopJournal(), end_process=end, tell=tell)
    left = Reset(reason="idle", active_at=0.0, notice="", left="a server runs on")
    after(replace(FRESH, id=SessionId("with a chat"), place=Place(platform="toy", chat="c")), left)
    after(replace(FRESH, id=SessionId("with nothing left")), replace(left, left=""))
    after(FRESH, left)
    await until(lambda: bool(told))
    await after.close()
    assert told == ["s: a server runs on"]
