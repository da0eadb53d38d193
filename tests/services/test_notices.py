"""What becomes of a word about a process whose conversation is over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from hermes.actors.process.process_services import Announcement
from hermes.domain.events import Notice
from hermes.domain.ids import SessionId
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.source import Place
from hermes.services.event_hub import EventHub
from hermes.services.notices import NoticeService
from hermes.services.outbox import OutboxService
from tests.storage.samples import append
from tests.support.journals import LoopJournal

SAID = Announcement(id="process:proc_1:end", session=SessionId("s"), text="It has ended.")


async def test_it_is_said_once_where_the_person_wrote_last() -> None:
    hub, journal, delivered = EventHub(), LoopJournal(), cast("list[OutboxMessage]", [])
    place = Place(platform="telegram", chat="7")
    opening = append("s", 0)
    assert journal.engine.commit([(replace(opening, head=replace(opening.head, place=place)),)]) == [None]
    feed = hub.subscribe()
    outbox = OutboxService(journal, delivered.extend, clock=lambda: 1.0, delivery=lambda: cast("Any", None))
    notices = NoticeService(hub=hub, journal=journal, outbox=outbox, clock=lambda: 1.0)
    for _ in range(2):
        await notices.announce(SAID)
    [outgoing] = delivered
    assert (outgoing.place, outgoing.text, outgoing.kind) == (place, "It has ended.", OutboxKind.NOTICE)
    assert journal.engine.outbox()[0].id == outgoing.id
    assert isinstance(feed.waiting()[0], Notice)


async def test_where_nobody_can_be_reached_whoever_watches_is_told() -> None:
    hub, journal, delivered = EventHub(), LoopJournal(), cast("list[OutboxMessage]", [])
    assert journal.engine.commit([(append("s", 0),)]) == [None]
    feed = hub.subscribe()
    outbox = OutboxService(journal, delivered.extend, clock=lambda: 1.0, delivery=lambda: cast("Any", None))
    notices = NoticeService(hub=hub, journal=journal, outbox=outbox, clock=lambda: 1.0)
    for session in ("s", "gone"):
        await notices.announce(replace(SAID, session=SessionId(session)))
    assert delivered == []
    assert [event.text for event in feed.waiting() if isinstance(event, Notice)] == ["It has ended."] * 2
