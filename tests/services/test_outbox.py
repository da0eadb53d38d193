"""Messages that an operator drops, and dead letters that are deleted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from hermes.domain.errors import BadInputError, BusyError, DeliveryError, StorageFullError
from hermes.domain.outbox_message import OutboxMessage
from hermes.services.outbox import OutboxService
from tests.actors.delivery.test_delivery import DeliveryHarness, outgoing
from tests.support.chat_platform import ToyPlatform
from tests.support.waiting import until

AWAY = DeliveryError("no route", retry_after_s=600)


class OutboxHarness(DeliveryHarness):
    def __init__(self) -> None:
        super().__init__(ToyPlatform())
        self.service = OutboxService(self.journal, self._deliver, clock=lambda: 5.0, delivery=lambda: self.ref)

    def _deliver(self, _outgoing: Sequence[OutboxMessage]) -> None:
        raise AssertionError("nothing is delivered here")

    def letters(self) -> dict[str, Any]:
        return {each.id: each for each in self.journal.engine.dead_letters()}

    async def is_waiting(self, name: str) -> None:
        await until(lambda: any(each.id == name and each.problem for each in self.journal.engine.outbox()))


@pytest.fixture
async def desk() -> AsyncIterator[OutboxHarness]:
    desk = OutboxHarness()
    yield desk
    await desk.stop()


async def test_dropped_message_is_kept_as_a_dead_letter_and_the_next_one_is_sent(desk: OutboxHarness) -> None:
    desk.platform.problems = [AWAY]
    await desk.enqueue(outgoing("a", "first"), outgoing("b", "second"))
    await desk.is_waiting("a")
    letter = await desk.service.drop("a", "the operator")
    assert (letter.id, letter.problem, letter.session) == ("a", "dropped by the operator", "s")
    assert letter.undelivered is not None
    assert letter.undelivered.text == "first"
    await until(lambda: desk.journal.engine.sent("b") is not None)
    assert desk.platform.texts() == ["second"]
    assert [each.id for each in await desk.service.waiting()] == []


async def test_message_behind_another_is_dropped_and_the_chat_goes_on_waiting(desk: OutboxHarness) -> None:
    desk.platform.problems = [AWAY]
    await desk.enqueue(outgoing("a", "first"), outgoing("b", "second"))
    await desk.is_waiting("a")
    await desk.service.drop("b", "ann")
    await desk.settled()
    assert (desk.platform.sending, list(desk.letters())) == (1, ["b"])
    assert [each.id for each in await desk.service.waiting()] == ["a"]


async def test_message_is_dropped_while_another_one_is_sent(desk: OutboxHarness) -> None:
    desk.platform.gate = asyncio.Event()
    await desk.enqueue(outgoing("a", "first"), outgoing("b", "second"), outgoing("c", "third"))
    await until(lambda: desk.platform.sending == 1)
    await desk.service.drop("b", "ann")
    desk.platform.gate.set()
    await until(lambda: desk.journal.engine.sent("c") is not None)
    assert desk.platform.texts() == ["first", "third"]


async def test_message_that_is_being_sent_is_not_dropped(desk: OutboxHarness) -> None:
    desk.platform.gate = asyncio.Event()
    await desk.enqueue(outgoing("a", "first"))
    await until(lambda: desk.platform.sending == 1)
    with pytest.raises(BusyError, match="being sent"):
        await desk.service.drop("a", "ann")
    desk.platform.gate.set()
    await until(lambda: desk.journal.engine.sent("a") is not None)
    assert desk.letters() == {}


async def test_answer_that_is_still_written_is_not_dropped(desk: OutboxHarness) -> None:
    await desk.enqueue(outgoing("reply:t1", "", final=False))
    with pytest.raises(BusyError, match="turn still runs"):
        await desk.service.drop("reply:t1", "ann")


async def test_message_for_a_platform_that_is_not_configured_is_dropped(desk: OutboxHarness) -> None:
    elsewhere = outgoing("a", "first")
    await desk.enqueue(
        OutboxMessage(
            id="a", kind=elsewhere.kind, place=type(elsewhere.place)(platform="gone", chat="1"), text="x", at=1.0
        )
    )
    letter = await desk.service.drop("a", "ann")
    assert (letter.problem, letter.at) == ("dropped by ann", 5.0)
    assert await desk.service.waiting() == []


async def test_failed_write_drops_nothing(desk: OutboxHarness) -> None:
    desk.platform.problems = [AWAY]
    await desk.enqueue(outgoing("a", "first"))
    await desk.is_waiting("a")
    desk.journal.refuse_with = StorageFullError("no space")
    with pytest.raises(StorageFullError):
        await desk.service.drop("a", "ann")
    desk.journal.refuse_with = None
    assert [each.id for each in await desk.service.waiting()] == ["a"]
    await desk.service.drop("a", "ann")
    assert list(desk.letters()) == ["a"]


async def test_dead_letter_is_deleted_once(desk: OutboxHarness) -> None:
    desk.platform.problems = [AWAY]
    await desk.enqueue(outgoing("a", "first"))
    await desk.is_waiting("a")
    await desk.service.drop("a", "ann")
    assert (await desk.service.delete_letter("a", "ann")).id == "a"
    assert desk.letters() == {}
    with pytest.raises(BadInputError) as unknown:
        await desk.service.delete_letter("a", "ann")
    assert unknown.value.code == "unknown_dead_letter"
    with pytest.raises(BadInputError) as unknown:
        await desk.service.drop("a", "ann")
    assert unknown.value.code == "unknown_outbox_message"
