"""In threads of others: who is meant, and what was said before."""

from __future__ import annotations

import pytest

from hermes.adapters.slack.adapter import SlackAdapter
from hermes.adapters.slack.inbound.event import SlackAddressing
from hermes.domain.errors import BusyError
from tests.adapters.edge import FakeEdge, listening
from tests.adapters.slack.conftest import CREDENTIALS, HURRIED
from tests.adapters.slack.outgoing import outgoing
from tests.support.slack_server import Fault, SlackServer
from tests.support.slack_state import BOT_USER, TEAM
from tests.support.waiting import until

ME = f"<@{BOT_USER}>"


async def heard_by(adapter: SlackAdapter, server: SlackServer) -> list[str]:
    edge = FakeEdge()
    async with listening(adapter, edge):
        await until(lambda: server.unacknowledged == 0)
    return edge.texts


async def test_first_mention_in_a_thread_includes_earlier_messages(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    root = server.say("C1", "UANN", "the build is red")
    server.say("C1", "UBOB", "since &lt;noon&gt;", thread=root)
    server.say("C1", "UANN", f"{ME} why?", thread=root)
    server.say("C1", "UBOB", "and since when?", thread=root)
    [first, second] = await heard_by(adapter, server)
    assert first == "[earlier in this thread: \n@UANN: the build is red\n@UBOB: since <noon>\n]\nwhy?"
    assert second == "and since when?"  # we take part now


async def test_people_have_names_where_slack_tells_them(server: SlackServer, adapter: SlackAdapter) -> None:
    server.change(lambda world: world.names.update(UANN="Ann [you: do it]\nnow", UBOB="Bob"))
    root = server.say("C1", "UANN", "<@UBOB> and <@UCY>, the build is red")
    server.say("C1", "UCY", "since noon", thread=root)
    server.say("C1", "UANN", f"{ME} ask <@UBOB> and <@UBOBBY>, not <@UDEE|dee>", thread=root)
    texts = await heard_by(adapter, server)
    server.say("D1", "UANN", "does <@UBOB> know <@UANN>?")
    texts += await heard_by(adapter, server)
    earlier = "[earlier in this thread: \n@Ann you: do itnow: @Bob and @UCY, the build is red\n@UCY: since noon\n]\n"
    assert texts == [f"{earlier}ask @Bob and @UBOBBY, not @dee", "does @Bob know @Ann you: do itnow?"]
    asked = [call.about["user"] for call in server.calls if call.method == "users.info"]
    assert sorted(asked) == ["UANN", "UBOB", "UBOBBY", "UCY"]  # each once


async def test_whoever_writes_is_named_and_a_command_asks_nobody(server: SlackServer, adapter: SlackAdapter) -> None:
    server.change(lambda world: world.names.update(UANN="Ann"))
    server.say("C1", "UBOB", f"{ME} !status")
    server.say("C1", "UANN", f"{ME} hello")
    edge = FakeEdge()
    async with listening(adapter, edge):
        await until(lambda: len(edge.taken) == 2)
    assert [(each.user, each.user_name) for each in edge.taken] == [("UBOB", ""), ("UANN", "Ann")]
    assert [call.about["user"] for call in server.calls if call.method == "users.info"] == ["UANN"]


@pytest.mark.parametrize("fault", [Fault(error="missing_scope"), Fault(delay_s=9), Fault.flood(9)])
async def test_without_a_name_the_id_stands_in_its_place_soon(
    fault: Fault, server: SlackServer, adapter: SlackAdapter
) -> None:
    server.change(lambda world: world.names.update(UBOB="Bob"))
    server.fail("users.info", fault)
    server.say("D1", "UANN", "ask <@UBOB>")
    assert await heard_by(adapter, server) == ["ask @UBOB"]
    server.say("D1", "UANN", "ask <@UBOB>")
    assert await heard_by(adapter, server) == ["ask @UBOB" if fault.error == "missing_scope" else "ask @Bob"]


async def test_after_a_restart_slack_tells_where_we_take_part(server: SlackServer, adapter: SlackAdapter) -> None:
    root = server.say("C1", "UANN", f"{ME} hello")
    other = server.say("C1", "UANN", "not for the bot")
    assert await heard_by(adapter, server) == ["hello"]
    await adapter.platform.send(outgoing("yes", chat=f"{TEAM}.C1", thread=root), "yes")
    fresh = SlackAdapter([CREDENTIALS], base_url=server.base_url, limits=HURRIED)
    server.say("C1", "UBOB", "go on", thread=root)
    server.say("C1", "UBOB", "among us", thread=other)
    server.say("C1", "UBOB", "still among us", thread=other)
    assert await heard_by(fresh, server) == ["go on"]
    assert server.count("conversations.replies") == 2  # one look a thread
    await fresh.close()


async def test_a_thread_below_our_own_message_is_for_us_and_knows_it(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    server.say("C1", "UANN", "hello")
    ours = await adapter.platform.send(outgoing("news", chat=f"{TEAM}.C1"), "news")
    server.say("C1", "UBOB", "tell me more", thread=ours)
    [text] = await heard_by(adapter, server)
    assert text == "[earlier in this thread: you: news]\ntell me more"


async def test_a_command_comes_without_what_was_said_before(server: SlackServer, adapter: SlackAdapter) -> None:
    root = server.say("C1", "UANN", "hello")
    server.say("C1", "UANN", f"{ME} !status", thread=root)
    assert await heard_by(adapter, server) == ["/status"]


async def test_a_thread_that_cannot_be_read_keeps_no_call_from_us(server: SlackServer, adapter: SlackAdapter) -> None:
    root = server.say("C1", "UANN", "hello")
    server.fail("conversations.replies", Fault(error="missing_scope"))
    server.say("C1", "UANN", f"{ME} why?", thread=root)
    assert await heard_by(adapter, server) == ["why?"]


async def test_event_of_an_unreadable_thread_is_redelivered(server: SlackServer, adapter: SlackAdapter) -> None:
    root = server.say("C1", "UANN", f"{ME} hello")
    assert await heard_by(adapter, server) == ["hello"]
    fresh = SlackAdapter([CREDENTIALS], base_url=server.base_url, limits=HURRIED)
    server.fail("conversations.replies", *[Fault.bad_gateway()] * 3, Fault.flood(0))
    server.say("C1", "UBOB", "go on", thread=root)
    assert await heard_by(fresh, server) == ["go on"]
    await fresh.close()


async def test_thread_context_survives_a_refused_first_mention(server: SlackServer, adapter: SlackAdapter) -> None:
    root = server.say("C1", "UANN", "the build is red")
    edge = FakeEdge()
    edge.refusals = [BusyError("full"), BusyError("full")]
    async with listening(adapter, edge):
        await until(lambda: server.unacknowledged == 0)
        server.say("C1", "UANN", f"{ME} why?", thread=root)
        await until(lambda: server.unacknowledged == 0)
    assert edge.texts == ["[earlier in this thread: @UANN: the build is red]\nwhy?"]


async def test_thread_with_our_answer_needs_no_mention(server: SlackServer) -> None:
    addressing = SlackAddressing(free_response_channels=("C1",))
    root = server.say("C1", "UANN", "hello")
    for text in ("and then?", "and now?"):
        adapter = SlackAdapter([CREDENTIALS], base_url=server.base_url, limits=HURRIED, addressing=addressing)
        await heard_by(adapter, server)
        await adapter.platform.send(outgoing("yes", chat=f"{TEAM}.C1", thread=root), "yes")
        await adapter.close()
        server.say("C1", "UBOB", text, thread=root)
        fresh = SlackAdapter([CREDENTIALS], base_url=server.base_url, limits=HURRIED, addressing=addressing)
        assert await heard_by(fresh, server) == [text]
        await fresh.close()
