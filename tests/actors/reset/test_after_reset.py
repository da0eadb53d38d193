"""What follows a reset: what is left behind is told to somebody, and nothing begins after a stop."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from hermes.actors.reset.after_reset import AfterReset
from hermes.domain.ids import SessionId
from hermes.domain.session.protocol import ResetSession
from hermes.domain.session.state import Session
from hermes.domain.source import Place
from tests.actors.talk import FRESH
from tests.support.journals import LoopJournal
from tests.support.waiting import until


async def test_only_what_has_no_chat_of_its_own_is_told_elsewhere() -> None:
    told: list[str] = []

    async def tell(session: Session, left: str) -> None:
        told.append(f"{session.id}: {left}")

    async def end(_: str) -> None:
        """There is none to end."""

    after = AfterReset(journal=LoopJournal(), end_process=end, tell=tell)
    left = ResetSession(reason="idle", active_at=0.0, notice="", left="a server runs on")
    after(replace(FRESH, id=SessionId("with a chat"), place=Place(platform="toy", chat="c")), left)
    after(replace(FRESH, id=SessionId("with nothing left")), replace(left, left=""))
    after(FRESH, left)
    await until(lambda: bool(told))
    await after.close()
    assert told == ["s: a server runs on `hermes kill ID` ends one."]


async def test_what_is_read_after_the_stop_is_left_to_the_next_daemon() -> None:
    ended: list[str] = []

    async def end(process: str) -> None:
        ended.append(process)

    left = ResetSession(reason="idle", active_at=0.0, notice="", left="a server runs on", end=("p1",))
    stopped = AfterReset(journal=LoopJournal(), end_process=end)
    await stopped.close()
    stopped(FRESH, left)
    assert [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("after the reset")] == []
    assert ended == []
