"""Posts into a chat: its session shows each to the model once, with the next turn."""

from __future__ import annotations

import json

from hermes.domain.ids import SessionKey
from hermes.domain.records import Posted, TurnStarted
from hermes.domain.source import Place
from tests.adapters.chat.edge import Edge, edge
from tests.support.waiting import until

ANNS = SessionKey("agent:main:toy:dm:ann")
CHAT = Place(platform="toy", chat="ann")


def sent_by_sessions(here: Edge) -> list[str]:
    return [each.text for each in here.owed_by_sessions() if each.id.startswith("send:")]


async def seen_by_the_model(here: Edge) -> list[str]:
    """Return the messages of the next model call."""
    work = await here.here.next_thought()
    shown = [str(json.loads(message)["content"]) for message in work.job.messages]
    here.here.agent.thoughts.insert(0, work)
    await here.here.answer("ok")
    return shown


async def test_post_is_sent_and_shown_to_the_model_with_the_next_turn_only() -> None:
    async with edge() as here:
        await here.says("ann", "hello")
        await here.here.answer("hi")
        await here.office.post("p1", CHAT, "the backup failed")
        assert sent_by_sessions(here) == ["the backup failed"]
        session = await here.here.desk.bound(ANNS)
        assert session is not None
        why = (await here.here.desk.view(session)).why
        assert "1 message posted into its chat without the agent" in why
        await here.says("ann", "why?")
        shown = await seen_by_the_model(here)
        assert sum("the backup failed" in each for each in shown) == 1
        assert "<untrusted-" in shown[-1]
        await here.says("ann", "and now?")
        shown = await seen_by_the_model(here)
        assert sum("the backup failed" in each for each in shown) == 1  # of the earlier turn
        assert (await here.here.session(session)).posted == ()


async def test_post_under_the_same_name_is_one_message() -> None:
    async with edge() as here:
        await here.says("ann", "hello")
        await here.here.answer("hi")
        await here.office.post("p1", CHAT, "the backup failed")
        await here.office.post("p1", CHAT, "the backup failed")
        assert sent_by_sessions(here) == ["the backup failed"]
        session = await here.here.desk.bound(ANNS)
        assert session is not None
        log = await here.here.journal.fetch(lambda reader: reader.log(session))
        assert sum(isinstance(entry.record, Posted) for entry in log) == 1


async def test_post_during_a_turn_waits_for_the_next_one() -> None:
    async with edge() as here:
        await here.says("ann", "hello")
        await until(lambda: bool(here.here.agent.thoughts))
        await here.office.post("p1", CHAT, "the backup failed")
        await here.here.answer("hi")
        session = await here.here.desk.bound(ANNS)
        assert session is not None
        log = await here.here.journal.fetch(lambda reader: reader.log(session))
        notes = [entry.record.note for entry in log if isinstance(entry.record, TurnStarted)]
        assert notes == [""]
        await here.says("ann", "why?")
        assert "the backup failed" in (await seen_by_the_model(here))[-1]


async def test_chat_without_a_session_gets_the_message_alone() -> None:
    async with edge() as here:
        await here.office.post("p1", CHAT, "the backup failed")
        assert here.told("ann") == ["the backup failed"]
        assert await here.here.desk.bound(ANNS) is None


async def test_ended_session_does_not_take_the_post() -> None:
    async with edge() as here:
        await here.says("ann", "hello")
        await here.here.answer("hi")
        session = await here.here.desk.bound(ANNS)
        assert session is not None
        await here.here.desk.end(session, "over")
        await here.office.post("p1", CHAT, "the backup failed")
        assert here.told("ann")[-1] == "the backup failed"
        assert (await here.here.session(session)).posted == ()
