"""What belongs to no conversation is told in a home channel, once; and posts without the agent."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.adapters.chat.home_watch import HomeWatch
from hermes.domain.access.home_channel import encode, fact_of
from hermes.domain.errors import BadInputError
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.operations import Cancel, MarkDelivered, SetAside
from hermes.domain.outbox_message import DeadLetter, DeliveredMessage, OutboxKind, OutboxMessage
from hermes.domain.process.process_record import ProcessView
from hermes.domain.read.views import ActorView
from hermes.domain.source import Place, Source
from hermes.services.home import HomeService
from hermes.services.pairing import FACT
from hermes.services.pairing_code import Approved, PairingBook
from hermes.services.pairing_code import encode as pairing_bytes
from tests.adapters.chat.edge import PEOPLE, Edge, edge
from tests.services.commands.harness import START

HOME = Place(platform="toy", chat="ann")


def adapter(name: str, state: str, error: str = "") -> ActorView:
    return ActorView(
        kind="adapter",
        name=name,
        state=state,
        mailbox=0,
        oldest_s=0,
        handled=0,
        slowest_s=0,
        age_s=0,
        last_error=error,
    )


def letter(name: str, *, at: float = START, undelivered: OutboxMessage | None = None) -> DeadLetter:
    return DeadLetter(
        id=name,
        session=SessionId("s"),
        turn=TurnId("t"),
        messages=(),
        source=Source(platform="toy"),
        options=b"{}",
        problem="it crashed twice",
        at=at,
        undelivered=undelivered,
    )


def watch(here: Edge, *actors: ActorView) -> HomeWatch:
    return HomeWatch(
        here.homes,
        sessions=here.here.desk,
        processes=here.here.processes,
        actors=lambda: list(actors),
        clock=lambda: here.here.now,
    )


async def test_sethome_survives_a_restart() -> None:
    async with edge(admins=PEOPLE) as here:
        await here.says("ann", "/sethome", "g", thread="t")
        here.restart()
        assert await here.homes.places() == [Place(platform="toy", chat="g", thread="t")]
        await here.says("bob", "/sethome")
        assert await here.homes.place("toy") == Place(platform="toy", chat="bob")


async def test_revoking_a_user_unsets_the_home_in_their_private_chat() -> None:
    async with edge(admins=PEOPLE) as here:
        eve = Approved(platform="toy", user="eve", name="Eve", at=START, chat="D1")
        early = Approved(platform="toy", user="early", name="", at=START)  # let in before the chat was kept
        await here.here.desk.remember(FACT, pairing_bytes(PairingBook(approved=(eve, early))))
        await here.says("ann", "/sethome")
        assert not await here.office.revoke("toy", "eve")
        assert await here.homes.places() == [HOME]
        for user, chat in (("eve", "D1"), ("early", "early")):
            await here.here.desk.remember(FACT, pairing_bytes(PairingBook(approved=(eve, early))))
            here.restart()
            await here.here.desk.remember(fact_of("toy"), encode(Place(platform="toy", chat=chat)))
            assert await here.office.revoke("toy", user)
            with pytest.raises(BadInputError, match="no home channel"):
                await here.office.address("toy", "", "")


async def test_notice_goes_to_one_home_channel_and_a_banner_to_all() -> None:
    async with edge(admins=PEOPLE) as here:
        homes = HomeService(["toy", "other"], sessions=here.here.desk, outbox=here.outbox, clock=lambda: 1.0)
        assert not await homes.tell("n", "nobody hears it")
        for platform in ("toy", "other"):
            await here.here.desk.remember(
                fact_of(platform), encode(Place(platform=platform, chat=f"home of {platform}"))
            )
        assert await homes.tell("n", "about other", about="other")
        assert await homes.tell("n", "said twice", about="other")
        assert await homes.tell("m", "not on other", about="other", elsewhere=True)
        await homes.tell_all("b", "banner")
        await homes.tell_all("c", "told otherwise", except_in={("toy", "home of toy"), ("other", "home of other")})
        assert here.told("home of other") == ["about other", "banner"]
        assert here.told("home of toy") == ["not on other", "banner"]


async def test_dead_letter_is_reported_once_except_for_home_notices() -> None:
    async with edge(admins=PEOPLE) as here:
        lost = OutboxMessage(
            id="reply:1", kind=OutboxKind.REPLY, place=Place(platform="toy", chat="gone"), text="x", at=1.0
        )
        letters = [letter("a"), letter("b", undelivered=lost), letter("home:c"), letter("old", at=START - 86_401)]
        mistyped = replace(lost, id="send:1", at=START)  # a terminal waited for it
        letters.append(letter("send:1", undelivered=mistyped))
        here.here.journal.engine.commit([tuple(SetAside(letter=each) for each in letters)])
        looking = watch(here)
        await looking.check()
        assert here.outgoing == []  # there is no home yet
        await here.says("ann", "/sethome")
        await looking.check()
        await looking.check()
        await watch(here).check()
        told = here.told("ann")[1:]
        assert len(told) == 2
        assert "session s became a dead letter: it crashed twice" in told[0]
        assert "A message to chat gone on toy could not be delivered" in told[1]


async def test_platform_that_is_down_is_reported_on_another_one() -> None:
    async with edge(admins=PEOPLE) as here:
        await here.says("ann", "/sethome")
        down = [adapter("other", "down", "no route"), adapter("toy", "down")]
        looking = HomeWatch(
            here.homes,
            sessions=here.here.desk,
            processes=here.here.processes,
            actors=lambda: down,
            clock=lambda: here.here.now,
        )
        for _ in range(3):
            await looking.check()
            here.here.now += 200
        await looking.check()
        assert here.told("ann")[1:] == ["other is down: no route"]
        down[0] = adapter("other", "running")
        await looking.check()
        down[0] = adapter("other", "silent")
        await looking.check()
        here.here.now += 300
        await looking.check()
        assert here.told("ann")[2:] == ["other is silent: no answer"]


async def test_a_platform_that_works_in_part_may_be_told_of_there() -> None:
    async with edge(admins=PEOPLE) as here:
        await here.says("ann", "/sethome")
        looking = HomeWatch(
            here.homes,
            sessions=here.here.desk,
            processes=here.here.processes,
            actors=lambda: [adapter("toy", "impaired", "workspace 2 of 2: no route")],
            clock=lambda: here.here.now,
        )
        await looking.check()
        here.here.now += 300
        await looking.check()
        assert here.told("ann")[1:] == ["toy is impaired: workspace 2 of 2: no route"]


async def test_ended_process_without_a_chat_is_reported_to_the_home() -> None:
    async with edge(admins=PEOPLE) as here:
        await here.says("ann", "/sethome")
        bare = await here.here.talk("hello", key="agent:main:cli:dm:x")
        chat = await here.session(await here.says("ann", "hello"))
        assert chat is not None
        for session, name in ((bare, "p1"), (chat, "p2")):
            here.here.processes.known[name] = ended(name, session)
        looking = watch(here)
        await looking.check()
        await looking.check()
        [told] = here.told("ann")[1:]
        assert f"belongs to session {bare}" in told


def ended(name: str, session: SessionId) -> ProcessView:
    return ProcessView(
        id=name,
        session=session,
        command="make",
        pid=1,
        started_at=START,
        heartbeat_at=START,
        active_at=START,
        ended_at=START,
        exit_code=0,
        notify=True,
    )


# ---------------------------------------------------------------- posts


async def test_a_post_goes_to_the_chat_that_is_named_or_home() -> None:
    async with edge(admins=PEOPLE) as here:
        office = here.office
        with pytest.raises(BadInputError, match="no home channel"):
            await office.address("", "", "")
        with pytest.raises(BadInputError, match="other is not configured: the configured ones are toy"):
            await office.address("other", "c", "")
        with pytest.raises(BadInputError, match=r"toyy is not configured: did you mean toy\?"):
            await office.address("toyy", "c", "")
        for chat in ("", "c"):
            with pytest.raises(BadInputError, match="no chat platform is set up; run `hermes setup telegram` or"):
                await replace(office, platforms=(), homes=none_at(here)).address("", chat, "")
        assert await office.address("", "c", "t") == Place(platform="toy", chat="c", thread="t")
        await here.says("ann", "/sethome")
        assert await office.address("toy", "", "") == await office.address("", "", "") == HOME
        homes = HomeService(["toy", "other"], sessions=here.here.desk, outbox=here.outbox, clock=lambda: 1.0)
        await here.here.desk.remember(fact_of("other"), encode(Place(platform="other", chat="x")))
        with pytest.raises(BadInputError, match="with --platform: toy or other"):
            await replace(office, homes=homes).address("", "", "")
        assert await replace(office, homes=homes).address("toy", "", "") == HOME


async def test_a_post_is_said_once_and_its_way_can_be_followed() -> None:
    async with edge(admins=PEOPLE) as here:
        office = here.office
        await office.post("1", HOME, "hello")
        await office.post("1", HOME, "hello")
        assert here.told("ann") == ["hello"]
        assert (await office.progress("1"))["state"] == "waiting"
        [outgoing] = here.outgoing
        engine = here.here.journal.engine
        sent = DeliveredMessage(id=outgoing.id, kind=outgoing.kind, place=HOME, at=1.0, sent_at=2.0, messages=("m1",))
        engine.commit([(MarkDelivered(sent=sent),)])
        assert (await office.progress("1"))["messages"] == ["m1"]
        await office.post("2", HOME, "hello")
        engine.commit([(SetAside(letter=letter("send:2")), Cancel(id="send:2"))])
        assert await office.progress("2") == {
            "state": "failed", "problem": "it crashed twice", "dead_letter": "send:2"
        }  # fmt: skip
        with pytest.raises(BadInputError, match="there is no post"):
            await office.progress("3")


def none_at(here: Edge) -> HomeService:
    return HomeService([], sessions=here.here.desk, outbox=here.outbox, clock=lambda: 1.0)
