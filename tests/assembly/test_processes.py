"""What becomes of a word about a process whose conversation is over."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from hermes.actors.hub import EventHub
from hermes.actors.outgoing import ObligationDesk
from hermes.actors.process_services import Announcement
from hermes.assembly.processes import announce
from hermes.events import Notice
from hermes.types import Obligation, Owed, Place, SessionId
from tests.journals import LoopJournal
from tests.storage.samples import append

SAID = Announcement(id="process:proc_1:end", session=SessionId("s"), text="It has ended.")


async def test_it_is_said_once_where_the_person_wrote_last() -> None:
    hub, journal, delivered = EventHub(), cast("Any", LoopJournal()), cast("list[Obligation]", [])
    place = Place(platform="telegram", chat="7")
    opening = append("s", 0)
    assert journal.engine.commit([(replace(opening, head=replace(opening.head, place=place)),)]) == [None]
    feed = hub.subscribe()
    for _ in range(2):
        await announce(hub, journal, ObligationDesk(journal, delivered.extend), SAID)
    [owed] = delivered
    assert (owed.place, owed.text, owed.kind) == (place, "It has ended.", Owed.NOTICE)
    assert journal.engine.outbox()[0].id == owed.id
    assert isinstance(feed.waiting()[0], Notice)


async def test_where_nobody_can_be_reached_whoever_watches_is_told() -> None:
    hub, journal, delivered = EventHub(), cast("Any", LoopJournal()), cast("list[Obligation]", [])
    assert journal.engine.commit([(append("s", 0),)]) == [None]
    feed = hub.subscribe()
    for session in ("s", "gone"):
        said = replace(SAID, session=SessionId(session))
        await announce(hub, journal, ObligationDesk(journal, delivered.extend), said)
    assert delivered == []
    assert [event.text for event in feed.waiting() if isinstance(event, Notice)] == ["It has ended."] * 2
