"""What is meant by a name, as the store tells it, through the front desk."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hermes.domain.errors import BadInputError, UnknownSessionError
from hermes.domain.ids import InboundKey, SessionId, TurnId, inbound_of
from hermes.domain.operations import MarkDelivered, See
from hermes.domain.outbox_message import DeliveredMessage, OutboxKind
from hermes.domain.read.trace import TraceState
from hermes.domain.source import Place, Source
from hermes.domain.turn.submission import Seen
from tests.actors.harness import SessionHarness, world

PLACE = Place(platform="toy", chat="c1")
ANN = Source(platform="toy", user="ann", place=PLACE)


@pytest.fixture
async def here() -> AsyncIterator[SessionHarness]:
    async with world() as made:
        yield made


def sent(
    name: str, *messages: str, chat: str = "c1", turn: str | None = None, session: str | None = None
) -> DeliveredMessage:
    return DeliveredMessage(
        id=name,
        kind=OutboxKind.REPLY,
        place=Place(platform="toy", chat=chat),
        at=1000.0,
        sent_at=1001.0,
        messages=messages,
        session=None if session is None else SessionId(session),
        turn=None if turn is None else TurnId(turn),
    )


async def turns(here: SessionHarness, name: str, limit: int = 20) -> list[str]:
    return [line.turn for line in await here.desk.trace(name, limit)]


async def test_a_message_is_found_by_every_id_it_has(here: SessionHarness) -> None:
    await here.say("first message", "s", inbound="toy:7", source=ANN)
    await here.answer_next()
    here.journal.engine.commit(
        [(MarkDelivered(sent=sent("reply:first message", "m1", turn="first message", session="s")),)]
    )
    await here.say("second message", "s", inbound=inbound_of("my key"))
    for name in ("toy:7", "first message", "first me", "reply:first message", "m1", "c1:m1", "toy:c1:m1"):
        assert await turns(here, name) == ["first message"], name
    [line] = await here.desk.trace("toy:7", 20)
    assert (line.inbound, line.state, line.sent) == ("toy:7", TraceState.SENT, ("m1",))
    assert await turns(here, "my key") == ["second message"]


async def test_a_session_has_its_last_messages_in_order(here: SessionHarness) -> None:
    for text in ("a", "b", "c"):
        await here.say(text, "s")
        await here.answer_next()
    assert await turns(here, "s") == ["a", "b", "c"]
    assert await turns(here, "s", limit=2) == ["b", "c"]
    assert await turns(here, "s", limit=1) == ["c"]


async def test_every_id_of_a_lineage_has_the_whole_conversation(here: SessionHarness) -> None:
    await here.say("a", "s", source=ANN, inbound="toy:1")
    await here.answer_next(full=True)
    await here.say("b", "s", source=ANN, inbound="toy:2")  # waits for the summary, and is carried along
    await here.summarise_next()
    await here.answer_next()
    child = (await here.session("s")).id
    assert child != "s"
    assert await turns(here, "s") == await turns(here, child) == ["a", "b"]
    [line] = await here.desk.trace("toy:2", 20)
    assert (line.session, line.inbound) == (child, "toy:2")
    outgoing = here.journal.engine.outgoing("reply:b")
    assert outgoing is not None, "what waited during a compression is answered in its chat"
    assert outgoing.place == PLACE


async def test_a_command_is_found_with_what_was_said_to_it(here: SessionHarness) -> None:
    seen = Seen(key=InboundKey("toy:9"), session=SessionId(""), turn=TurnId("x"), fingerprint=b"", at=1000.0)
    here.journal.engine.commit([(See(seen=seen), MarkDelivered(sent=sent("command:toy:9", "m4")))])
    for name in ("toy:9", "m4", "command:toy:9"):
        [line] = await here.desk.trace(name, 20)
        assert (line.inbound, line.state, line.sent) == ("toy:9", TraceState.SENT, ("m4",))


async def test_a_message_id_that_several_chats_have_is_asked_about(here: SessionHarness) -> None:
    await here.say("a", "s")
    await here.say("b", "t")
    first = MarkDelivered(sent=sent("reply:a", "5", turn="a", session="s"))
    second = MarkDelivered(sent=sent("reply:b", "5", chat="c2", turn="b", session="t"))
    here.journal.engine.commit([(first, second)])
    with pytest.raises(BadInputError, match="toy:c1:5, toy:c2:5"):
        await here.desk.trace("5", 20)
    assert await turns(here, "toy:c2:5") == ["b"]


async def test_what_nobody_knows_is_said_to_be_unknown(here: SessionHarness) -> None:
    await here.say("a", "s")
    with pytest.raises(UnknownSessionError, match="no session, message or turn toy:1"):
        await here.desk.trace("toy:1", 20)
