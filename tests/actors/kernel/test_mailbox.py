from __future__ import annotations

import asyncio
import threading
from typing import Any

import pykka
import pytest
from pykka.messages import _ActorStop

from hermes.actors.kernel.future import LoopFuture
from hermes.actors.kernel.mailbox import ActorDied, Inbox, Letter
from hermes.actors.kernel.scheduler import Dispatcher


class Drained:
    """An inbox, and how often its drain was called."""

    def __init__(self) -> None:
        self.times = 0
        self.inbox = Inbox(Dispatcher.here())
        self.inbox.open(self.drain)

    def drain(self, now: float, _until: float) -> float:
        self.times += 1
        return now

    def put(self, *sent: object) -> None:
        for message in sent:
            self.inbox.put(Letter(message))

    def take_all(self) -> list[object]:
        taken = []
        while (letter := self.inbox.take()) is not None:
            taken.append(letter.message)
        return taken


def died(name: str) -> ActorDied:
    ref: Any = None
    return ActorDied(ref=ref, name=name, cause=None, message=None, unhandled=())


async def test_mail_comes_out_in_the_order_it_came_in() -> None:
    drained = Drained()
    drained.put(1, 2, 3)
    assert drained.inbox.take().message == 1  # type: ignore[union-attr]
    drained.put(4)
    assert drained.take_all() == [2, 3, 4]
    drained.put(5)
    assert drained.take_all() == [5]


async def test_stops_and_death_notices_overtake_mail_in_their_own_order() -> None:
    drained = Drained()
    drained.put(1, died("a"), 2, _ActorStop(), died("b"))
    assert drained.take_all() == [died("a"), _ActorStop(), died("b"), 1, 2]


async def test_a_burst_has_it_drained_once_and_the_next_burst_again() -> None:
    drained = Drained()
    await asyncio.sleep(0)
    assert drained.times == 1  # to begin with
    drained.take_all()
    drained.put(1, 2, 3)
    await asyncio.sleep(0)
    assert drained.times == 2
    drained.put(4)
    await asyncio.sleep(0)
    assert drained.times == 2  # whoever drains has not yet found it empty
    drained.take_all()
    drained.put(5)
    await asyncio.sleep(0)
    assert drained.times == 3


async def test_closing_returns_what_waits_control_first() -> None:
    drained = Drained()
    drained.put(1, 2, _ActorStop())
    assert [letter.message for letter in drained.inbox.close("gone")] == [_ActorStop(), 1, 2]
    assert len(drained.inbox) == 0


async def test_closing_returns_what_other_threads_have_left() -> None:
    drained = Drained()
    thread = threading.Thread(target=drained.put, args=("left in time",))
    thread.start()
    thread.join(30)  # and the loop has had no turn to deliver it
    assert [letter.message for letter in drained.inbox.close("gone")] == ["left in time"]


async def test_a_closed_inbox_refuses_by_name() -> None:
    drained = Drained()
    drained.inbox.close("session 17 has ended")
    asked, stopped = LoopFuture(), LoopFuture()
    with pytest.raises(pykka.ActorDeadError, match="session 17 has ended"):
        drained.put("told")
    with pytest.raises(pykka.ActorDeadError, match="session 17 has ended"):
        await asyncio.to_thread(drained.put, "told from another thread")
    drained.inbox.put(Letter("asked", asked))
    drained.inbox.put(Letter(_ActorStop(), stopped))
    with pytest.raises(pykka.ActorDeadError, match="session 17 has ended"):
        await asked
    assert await stopped is False


async def test_an_idle_inbox_holds_no_queue() -> None:
    drained = Drained()
    drained.put(*range(1000), _ActorStop())
    drained.take_all()
    assert drained.inbox._rest is None
    assert drained.inbox._control is None


async def test_it_says_how_full_it_is() -> None:
    drained = Drained()
    assert (len(drained.inbox), drained.inbox.oldest_s(), drained.inbox.is_stopping()) == (0, 0.0, False)
    drained.put(1, 2, died("a"))
    assert len(drained.inbox) == 3
    assert not drained.inbox.is_stopping()
    drained.put(_ActorStop())
    assert drained.inbox.is_stopping()


async def test_the_oldest_is_the_one_that_was_sent_first_in_either_lane() -> None:
    drained = Drained()
    mail, notice = Letter(1), Letter(died("a"))
    mail.sent -= 100
    notice.sent -= 10
    drained.inbox.put(mail)
    drained.inbox.put(notice)
    assert 100 <= drained.inbox.oldest_s() < 200
    drained.inbox.take()
    assert 100 <= drained.inbox.oldest_s() < 200
    drained.inbox.take()
    assert drained.inbox.oldest_s() == 0.0


def test_an_inbox_whose_loop_is_closed_refuses() -> None:
    async def make() -> Drained:
        return Drained()

    drained = asyncio.run(make())
    asked = LoopFuture()
    for _ in range(2):
        with pytest.raises(pykka.ActorDeadError, match="event loop is closed"):
            drained.put("told")
    drained.inbox.put(Letter("asked", asked))
    with pytest.raises(pykka.ActorDeadError, match="event loop is closed"):
        asked.get(timeout=1)
