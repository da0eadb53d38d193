"""What was written while nobody listened is taken once somebody does: once, in its order, and at Slack's pace."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from loguru import logger

from hermes.adapters.slack.adapter import SlackAdapter
from hermes.adapters.slack.inbound.backfill import LONGEST_S, MARGIN_S, Backfill
from hermes.adapters.slack.inbound.event import SlackAddressing
from hermes.adapters.slack.inbound.intake import SlackIntake
from hermes.adapters.slack.inbound.read_position import ReadPosition
from hermes.adapters.slack.rate_limiter import Allowance
from hermes.adapters.slack.workspace import Credentials, SlackClient
from hermes.config.secret import Secret
from hermes.domain.errors import BusyError, PlatformError
from tests.adapters.edge import DEADLINE_S, FakeEdge, listening
from tests.adapters.slack.conftest import CREDENTIALS, HURRIED
from tests.support.slack_server import APP_TOKEN, Fault, SlackServer
from tests.support.slack_state import BOT_USER, TEAM
from tests.support.waiting import until

ME = f"<@{BOT_USER}>"
NOTE = "slack.heard_until"
DONE = f"slack: backfill of {TEAM} finished"


@pytest.fixture
def said() -> Iterator[list[str]]:
    """What goes to the log."""
    lines: list[str] = []
    number = logger.add(lambda message: lines.append(message.record["message"]), level="DEBUG")
    yield lines
    logger.remove(number)


@pytest.fixture
def edge() -> FakeEdge:
    """Of a daemon that was there a minute ago."""
    edge = FakeEdge()
    edge.notes[NOTE] = json.dumps({TEAM: time.time() - 60}).encode()
    return edge


@asynccontextmanager
async def life(
    server: SlackServer,
    edge: FakeEdge,
    *credentials: Credentials,
    listen: tuple[str, int] | None = None,
    clock: Callable[[], float] = time.time,
) -> AsyncIterator[SlackAdapter]:
    adapter = SlackAdapter(
        credentials or [CREDENTIALS],
        base_url=server.base_url,
        limits=HURRIED,
        listen=listen,
        clock=clock,
    )
    async with listening(adapter, edge):
        yield adapter
    await adapter.close()


def missed(server: SlackServer, channel: str, text: str, **more: str) -> str:
    """Slack tried for some minutes to bring it."""
    ts = server.say(channel, "UANN", text, **more)
    server.give_up()
    return ts


def heard_until(edge: FakeEdge) -> float:
    return float(json.loads(edge.notes[NOTE])[TEAM])


@pytest.mark.parametrize("listen", [None, ("127.0.0.1", 0)])
async def test_what_was_missed_is_taken_in_its_order_and_only_once(
    listen: tuple[str, int] | None, server: SlackServer, edge: FakeEdge, said: list[str]
) -> None:
    missed(server, "D1", "one")
    missed(server, "C1", "nobody is meant")
    called = missed(server, "C1", f"{ME} two")
    missed(server, "C1", "and three", thread=called)
    missed(server, "D1", "four")
    server.change(lambda world: world.post(TEAM, {"channel": "D1", "text": "ours"}))
    for _ in range(2):
        async with life(server, edge, listen=listen):
            await until(lambda: said.count(DONE) == 1)
        assert [each.text for each in edge.taken if "D1" in each.place.chat] == ["one", "four"]
        assert [each.text for each in edge.taken if "C1" in each.place.chat] == ["two", "and three"]
        assert {each.place.thread for each in edge.taken if "C1" in each.place.chat} == {called}
        edge.taken.clear()  # the store of a daemon would know them
        said.clear()
        edge.notes[NOTE] = json.dumps({TEAM: time.time() - 60}).encode()


async def test_old_thread_of_a_conversation_is_backfilled(
    server: SlackServer, edge: FakeEdge, said: list[str]
) -> None:
    async with life(server, edge):
        root = server.say("C1", "UANN", f"{ME} hello")
        await until(lambda: edge.texts == ["hello"])
    # It is older than what is looked at; only what was said in it is not.
    server.change(lambda world: setattr(world.message("C1", root), "ts", "1000.000001"))
    edge.taken[0] = replace(edge.taken[0], place=replace(edge.taken[0].place, thread="1000.000001"))
    missed(server, "C1", "go on", thread="1000.000001")
    async with life(server, edge):
        await until(lambda: edge.texts == ["hello", "go on"])


async def test_first_boot_saves_the_read_position_without_backfill(server: SlackServer) -> None:
    edge = FakeEdge()
    missed(server, "D1", "before Hermes came")
    began = time.time()
    async with life(server, edge):
        await until(lambda: NOTE in edge.notes)
    assert edge.taken == []
    assert server.count("users.conversations") == server.count("conversations.history") == 0
    assert began <= heard_until(edge) <= time.time()


@pytest.mark.parametrize(("away_s", "looked_s"), [(3600.0, 3600.0 + MARGIN_S), (9e6, LONGEST_S), (-500.0, MARGIN_S)])
async def test_backfill_starts_with_a_margin_and_is_limited_to_a_day(
    away_s: float, looked_s: float, server: SlackServer, edge: FakeEdge, said: list[str]
) -> None:
    edge.notes[NOTE] = json.dumps({TEAM: time.time() - away_s}).encode()
    server.change(lambda world: world.channels.update(D1=TEAM))
    async with life(server, edge):
        await until(lambda: DONE in said)
    [oldest] = [float(each.about["oldest"]) for each in server.calls if each.method == "conversations.history"]
    assert time.time() - oldest == pytest.approx(looked_s, abs=30)


async def test_rate_limited_backfill_does_not_delay_live_events(server: SlackServer, edge: FakeEdge) -> None:
    missed(server, "D1", "missed")
    server.fail("conversations.history", Fault.flood(300), Fault.flood(1))
    async with life(server, edge):
        await until(lambda: server.count("conversations.history") == 1)
        server.say("D2", "UBOB", "live")
        await until(lambda: edge.texts == ["live"])
    async with life(server, edge):
        await until(lambda: "missed" in edge.texts)
    asked = [each.at for each in server.calls if each.method == "conversations.history"]
    assert asked[2] - asked[1] >= 1


async def test_a_look_that_failed_is_made_again_by_the_next_connection(
    server: SlackServer, edge: FakeEdge, said: list[str]
) -> None:
    missed(server, "D1", "hello")
    before = heard_until(edge)
    server.fail("conversations.history", Fault.bad_gateway())
    async with life(server, edge):
        await until(lambda: any("failed, retrying later" in line for line in said))
    assert edge.taken == []
    assert heard_until(edge) == before
    async with life(server, edge):
        await until(lambda: edge.texts == ["hello"])
        await until(lambda: DONE in said)
    assert heard_until(edge) > before


async def test_missing_scope_is_logged_once_and_hides_nothing_else(
    server: SlackServer, edge: FakeEdge, said: list[str]
) -> None:
    server.scopes -= {"channels:read", "channels:history"}
    missed(server, "C1", f"{ME} hidden")
    missed(server, "D1", "hello")
    adapter = SlackAdapter([CREDENTIALS], base_url=server.base_url, limits=HURRIED)
    for number in (1, 2):
        async with listening(adapter, edge):
            await until(lambda number=number: said.count(DONE) == number)  # type: ignore[misc]
    await adapter.close()
    assert edge.texts == ["hello"]
    [line] = [each for each in said if "channels:read" in each]
    assert "`hermes slack manifest` lists all scopes" in line


async def test_waiting_event_holds_the_read_position(server: SlackServer, edge: FakeEdge, said: list[str]) -> None:
    began, later_s = time.time(), [0.0]
    async with life(server, edge, clock=lambda: began + later_s[0]):
        await until(lambda: DONE in said)
        edge.refusals = [BusyError("full")] * 1000
        later_s[0] = 100.0
        server.say("D1", "UANN", "not now")
        await until(lambda: len(edge.offered) > 1)
        later_s[0] = 9000.0
    assert heard_until(edge) == began + 100
    edge.refusals.clear()
    server.give_up()
    async with life(server, edge):
        await until(lambda: edge.texts == ["not now"])


async def test_broken_connection_is_a_gap_and_replaced_one_is_not(
    server: SlackServer, adapter: SlackAdapter, edge: FakeEdge, said: list[str]
) -> None:
    async with listening(adapter, edge) as task:
        await until(lambda: DONE in said)
        server.disconnect("refresh_requested", close=False)
        await until(lambda: server.links == 2)
        server.cut()
        with pytest.raises(PlatformError):
            await asyncio.wait_for(task, DEADLINE_S)
    assert said.count(DONE) == 1
    missed(server, "D1", "in between")
    async with listening(adapter, edge):
        await until(lambda: edge.texts == ["in between"])


async def test_gap_during_a_backfill_is_filled_too(server: SlackServer, edge: FakeEdge, said: list[str]) -> None:
    client = SlackClient([CREDENTIALS], server.base_url + "/", answer_within_s=20)
    intake, pace = SlackIntake(SlackAddressing()), Allowance(every_s=0, at_once=1)
    backfill = Backfill(intake, ReadPosition(), allowance=pace, clock=time.time, warned=set())
    looking = asyncio.create_task(backfill.run(client, edge))
    missed(server, "D1", "one")
    server.fail("conversations.history", Fault(delay_s=0.3))
    backfill.opened()
    await until(lambda: server.count("conversations.history") == 1)
    backfill.closed()
    missed(server, "D1", "two")
    await until(lambda: DONE in said)
    backfill.opened()
    await until(lambda: edge.texts == ["one", "two"])
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    await client.close()


async def test_a_workspace_whose_app_is_down_was_not_heard(
    server: SlackServer, edge: FakeEdge, said: list[str]
) -> None:
    server.tokens["xoxb-other"] = "T0002"
    before = {TEAM: time.time() - 60, "T0002": time.time() - 60}
    edge.notes[NOTE] = json.dumps(before).encode()
    away = Credentials(bot=Secret("xoxb-other"), app=Secret("xapp-wrong"))
    async with life(server, edge, CREDENTIALS, away):
        await until(lambda: DONE in said)
    assert heard_until(edge) > before[TEAM]
    assert json.loads(edge.notes[NOTE])["T0002"] == before["T0002"]
    assert not any(APP_TOKEN in line for line in said)
