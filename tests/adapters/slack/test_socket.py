"""Envelopes are acknowledged after they were taken, come again until then, and each counts once."""

from __future__ import annotations

import asyncio
import threading

import pytest

from hermes.adapters.slack.adapter import SlackAdapter
from hermes.adapters.slack.health import keep_asking
from hermes.adapters.slack.workspace import Credentials, SlackClient
from hermes.config.secret import Secret
from hermes.domain.errors import (
    AlreadySeenError,
    BadInputError,
    BusyError,
    DeliveryError,
    HermesError,
    PlatformError,
    StoppingError,
    StorageFullError,
)
from hermes.domain.ids import InboundKey, SessionId, TurnId
from hermes.domain.turn.submission import Seen
from hermes.ports.chat import Inbound
from tests.adapters.edge import DEADLINE_S, FakeEdge, FileEdge, listening
from tests.adapters.slack.conftest import CREDENTIALS, HURRIED
from tests.adapters.slack.outgoing import outgoing
from tests.support.slack_server import APP_TOKEN, BOT_TOKEN, Fault, SlackServer
from tests.support.slack_state import BOT_USER, TEAM
from tests.support.waiting import until

ME = f"<@{BOT_USER}>"


async def test_messages_are_taken_in_their_order_and_then_acknowledged(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    edge = FakeEdge()
    stamps = [server.say(f"D{number % 2}", "UANN", f"hello {number}") for number in range(6)]
    async with listening(adapter, edge):
        await until(lambda: server.unacknowledged == 0)
    assert [text for text in edge.texts if text[-1] in "024"] == ["hello 0", "hello 2", "hello 4"]
    assert [text for text in edge.texts if text[-1] in "135"] == ["hello 1", "hello 3", "hello 5"]
    first = next(each for each in edge.taken if each.text == "hello 0")
    assert first.id == f"slack:{TEAM}:D0:{stamps[0]}"
    assert (first.user, first.place.chat, first.place.thread, first.place.message) == (
        "UANN",
        f"{TEAM}.D0",
        "",
        stamps[0],
    )
    assert edge.proofs >= 1


async def test_nothing_is_acknowledged_before_it_was_taken(server: SlackServer, adapter: SlackAdapter) -> None:
    edge = FakeEdge()
    waiting: list[int] = []
    edge.before_take = lambda inbound: waiting.append(server.unacknowledged)
    server.say("D1", "UANN", "one")
    async with listening(adapter, edge):
        await until(lambda: server.unacknowledged == 0)
    assert waiting == [1]


class SlowEdge(FakeEdge):
    """Stores nothing in one chat until it may."""

    def __init__(self, chat: str) -> None:
        super().__init__()
        self.chat = chat
        self.may = asyncio.Event()

    async def take(self, inbound: Inbound) -> str:
        if inbound.place.chat == self.chat:
            await self.may.wait()
        return await super().take(inbound)


async def test_a_slow_chat_holds_up_no_other_and_its_redeliveries_are_one(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    edge = SlowEdge(f"{TEAM}.D1")
    server.say("D1", "UANN", "slow one")
    server.say("D1", "UANN", "slow two")
    server.say("D2", "UBOB", "quick")
    async with listening(adapter, edge):
        await until(lambda: edge.texts == ["quick"])
        await until(lambda: any(each.deliveries > 1 for each in server._world.waiting))
        edge.may.set()
        await until(lambda: server.unacknowledged == 0)
    assert edge.texts == ["quick", "slow one", "slow two"]


async def test_slow_file_delays_messages_but_no_command(server: SlackServer, adapter: SlackAdapter) -> None:
    edge = FileEdge()
    server.share("D1", "UANN", ("voice.ogg", b"OggS", "audio/ogg"))
    server.say("D1", "UANN", "behind it")
    server.say("D1", "UANN", "!stop")
    server.slash("D1", "UANN", "status")
    async with listening(adapter, edge):
        await until(lambda: sorted(edge.texts) == ["/status", "/stop"])
        edge.may.set()
        await until(lambda: server.unacknowledged == 0)
    assert edge.texts[2:] == ["", "behind it"]


async def test_a_mention_is_one_message_although_slack_reports_it_twice(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    edge = FakeEdge()
    stamp = server.say("C1", "UANN", f"{ME} hello &amp; <https://a.example|there>")
    assert server.unacknowledged == 2
    async with listening(adapter, edge):
        await until(lambda: server.unacknowledged == 0)
    [taken] = edge.offered
    assert (taken.text, taken.chat_type) == ("hello & there (https://a.example)", "thread")
    assert (taken.place.thread, taken.place.message) == (stamp, stamp)


@pytest.mark.parametrize("refusal", [StoppingError("going"), BusyError("full"), StorageFullError("no space")])
async def test_a_refused_message_is_offered_again_and_holds_its_place(
    refusal: HermesError, server: SlackServer, adapter: SlackAdapter
) -> None:
    edge = FakeEdge()
    edge.refusals = [refusal, refusal]
    server.say("D1", "UANN", "one")
    server.say("D1", "UANN", "two")
    async with listening(adapter, edge):
        await until(lambda: server.unacknowledged == 0)
    assert [each.text for each in edge.offered] == ["one", "one", "one", "two"]


async def test_a_message_that_was_seen_before_is_acknowledged(server: SlackServer, adapter: SlackAdapter) -> None:
    edge = FakeEdge()
    seen = Seen(key=InboundKey("slack:1"), session=SessionId("s"), turn=TurnId("t"), fingerprint=b"", at=0.0)
    edge.refusals = [AlreadySeenError(seen)]
    server.say("D1", "UANN", "one")
    async with listening(adapter, edge):
        await until(lambda: server.unacknowledged == 0)
    assert len(edge.offered) == 1


async def test_unparsable_update_is_confirmed_and_skipped(server: SlackServer, adapter: SlackAdapter) -> None:
    edge = FakeEdge()
    edge.refusals = [BadInputError("no")]
    server.say("D1", "UANN", "one")
    server.post_event({"type": "message", "channel": "D1", "user": "UANN", "text": "no timestamp"})
    server.post_event({"type": "message", "subtype": "message_changed", "channel": "D1", "message": "odd"})
    server.post_event({"type": "reaction_added", "user": "UANN"})
    async with listening(adapter, edge):
        await until(lambda: server.unacknowledged == 0)
    assert edge.taken == []


async def test_a_mistake_with_one_message_ends_nothing_and_it_comes_again(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    edge = FakeEdge()

    def stumble(inbound: Inbound) -> None:
        if len(edge.offered) == 1:
            raise RuntimeError("a mistake of ours")

    edge.before_take = stumble
    server.say("D1", "UANN", "hello")
    async with listening(adapter, edge) as task:
        await until(lambda: server.unacknowledged == 0)
        assert not task.done()
    assert edge.texts == ["hello"]


async def test_a_connection_outlives_the_time_that_an_answer_may_take(server: SlackServer) -> None:
    adapter = SlackAdapter([CREDENTIALS], base_url=server.base_url, limits=HURRIED, answer_within_s=1)
    edge = FakeEdge()
    async with listening(adapter, edge):
        await until(lambda: server.links == 1)
        await asyncio.sleep(2.2)  # that time twice
        server.say("D1", "UANN", "hello")
        await until(lambda: server.unacknowledged == 0)
    assert server.count("apps.connections.open") == 1
    await adapter.close()


async def test_the_same_event_after_a_restart_has_the_same_id(server: SlackServer) -> None:
    server.say("D1", "UANN", "hello")
    ids = []
    for _ in range(2):
        adapter = SlackAdapter([CREDENTIALS], base_url=server.base_url, limits=HURRIED)
        edge = FakeEdge()
        async with listening(adapter, edge):
            await until(lambda: server.unacknowledged == 0)
        await adapter.close()
        ids += [each.id for each in edge.taken]
        server.repeat()
    assert len(ids) == 2
    assert len(set(ids)) == 1


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_announced_disconnect_opens_the_next_connection_first(
    reason: str, server: SlackServer, adapter: SlackAdapter
) -> None:
    edge = FakeEdge()
    async with listening(adapter, edge):
        await until(lambda: server.links == 1)
        server.disconnect(reason, close=False)
        await until(lambda: server.links == 2)
        server.say("D1", "UANN", "in between")
        await until(lambda: edge.texts == ["in between"])
        await until(lambda: server.unacknowledged == 0)


async def test_lost_acknowledgement_does_not_duplicate_an_event(server: SlackServer, adapter: SlackAdapter) -> None:
    edge = SlowEdge(f"{TEAM}.D1")
    async with listening(adapter, edge) as task:
        await until(lambda: server.links == 1)
        server.say("D1", "UANN", "one")
        await until(lambda: any(each.deliveries for each in server._world.waiting))
        server.disconnect("refresh_requested")
        await until(lambda: server.links == 1 and server._world.waiting[0].deliveries > 1)
        edge.may.set()
        await until(lambda: server.unacknowledged == 0)
        assert not task.done()
    assert edge.texts == ["one"]


async def test_short_lived_connections_are_an_error_and_events_are_redelivered(
    server: SlackServer, adapter: SlackAdapter
) -> None:
    edge = FakeEdge()
    async with listening(adapter, edge) as task:
        await until(lambda: server.links == 1)
        server.cut()
        with pytest.raises(PlatformError, match="closed the connection"):
            await asyncio.wait_for(task, DEADLINE_S)
    server.say("D1", "UANN", "meanwhile")
    async with listening(adapter, edge):
        await until(lambda: edge.texts == ["meanwhile"])


@pytest.mark.parametrize(
    ("reason", "says"),
    [("link_disabled", "Socket Mode is switched off"), ("too_many_websockets", "too many connections")],
)
async def test_what_only_a_person_can_change_is_said(
    reason: str, says: str, server: SlackServer, adapter: SlackAdapter
) -> None:
    async with listening(adapter, FakeEdge()) as task:
        await until(lambda: server.links == 1)
        server.disconnect(reason)
        with pytest.raises(PlatformError, match=says):
            await asyncio.wait_for(task, DEADLINE_S)
    await until(lambda: server.links == 0)


async def test_a_silent_connection_is_given_up(server: SlackServer) -> None:
    patient = SlackAdapter([CREDENTIALS], base_url=server.base_url, limits=HURRIED, ping_s=1.5)
    edge = FakeEdge()
    async with listening(patient, edge) as task:
        await until(lambda: edge.proofs >= 2)  # answers to pings are proofs of health
        assert not task.done()
    await patient.close()
    server.deaf = True
    adapter = SlackAdapter([CREDENTIALS], base_url=server.base_url, limits=HURRIED, ping_s=0.1)
    async with listening(adapter, edge) as task:
        with pytest.raises(PlatformError, match="closed the connection"):
            await asyncio.wait_for(task, DEADLINE_S)
    await adapter.close()


async def test_a_connection_without_a_hello_is_none(server: SlackServer) -> None:
    adapter = SlackAdapter([CREDENTIALS], base_url=server.base_url, limits=HURRIED, ping_s=0.1)
    server.welcome = False
    server.deaf = True
    with pytest.raises(PlatformError, match="sent no hello"):
        await adapter.run(FakeEdge())
    await adapter.close()


@pytest.mark.parametrize(
    ("method", "fault", "says"),
    [
        ("apps.connections.open", Fault.bad_gateway(), "a proxy failed \\(HTTP 502"),
        ("auth.test", Fault(status=500, page=b"oops"), "a proxy failed \\(HTTP 500"),
        ("apps.connections.open", Fault.flood(3), "retry in 3 s"),
        ("apps.connections.open", Fault(lost=True), "cannot be reached"),
        ("auth.test", Fault(delay_s=60), "did not answer in time"),
        ("auth.test", Fault(error="token_revoked"), "rejected the token"),
        ("auth.test", Fault(error="missing_scope"), "lacks the scope"),
    ],
)
async def test_a_failed_start_says_what_happened_and_can_be_repeated(
    method: str, fault: Fault, says: str, server: SlackServer, adapter: SlackAdapter
) -> None:
    server.fail(method, fault)
    with pytest.raises(PlatformError, match=says):
        await adapter.run(FakeEdge())
    edge = FakeEdge()
    server.say("D1", "UANN", "hello")
    async with listening(adapter, edge):
        await until(lambda: edge.texts == ["hello"])


async def test_a_wrong_token_is_named_but_not_shown(server: SlackServer) -> None:
    adapter = SlackAdapter([Credentials(bot=Secret(BOT_TOKEN), app=Secret("xapp-wrong"))], base_url=server.base_url)
    with pytest.raises(PlatformError, match="check SLACK_BOT_TOKEN") as caught:
        await adapter.run(FakeEdge())
    assert "xapp-wrong" not in str(caught.value)
    await adapter.close()


async def test_several_workspaces_are_served_by_one_app(server: SlackServer) -> None:
    server.tokens["xoxb-other"] = "T0002"
    credentials = [CREDENTIALS, Credentials(bot=Secret("xoxb-other"), app=Secret(APP_TOKEN))]
    adapter = SlackAdapter(credentials, base_url=server.base_url, limits=HURRIED)
    edge = FakeEdge()
    server.say("D1", "UANN", "here")
    server.say("D2", "UBOB", "there", team="T0002")
    server.say("D3", "UEVE", "nowhere", team="T0003")
    async with listening(adapter, edge):
        await until(lambda: server.unacknowledged == 0)
        assert server.links == 1
    assert sorted(each.place.chat for each in edge.taken) == [f"{TEAM}.D1", "T0002.D2"]
    await adapter.close()


async def test_an_app_that_is_down_takes_no_other_down(server: SlackServer) -> None:
    credentials = [Credentials(bot=Secret(BOT_TOKEN), app=Secret("xapp-wrong")), CREDENTIALS]
    adapter = SlackAdapter(credentials, base_url=server.base_url, limits=HURRIED)
    edge = FakeEdge()
    server.say("D1", "UANN", "hello")
    async with listening(adapter, edge):
        await until(lambda: edge.texts == ["hello"])
        await until(lambda: "rejected the token" in edge.troubles.get("app 1 of 2", ""))
        server.app_tokens.add("xapp-wrong")
        await until(lambda: edge.troubles == {})
        await until(lambda: server.links == 2)
    await adapter.close()


async def test_revoked_token_is_shown_to_listeners(server: SlackServer) -> None:
    client = SlackClient([CREDENTIALS], server.base_url + "/", answer_within_s=20)
    edge = FakeEdge()
    await client.workspaces()
    asking = asyncio.create_task(keep_asking(client, edge, every_s=0.02))
    server.fail("auth.test", Fault(error="token_revoked"))
    await until(lambda: "token_revoked" in edge.troubles.get(f"workspace {TEAM}", ""))
    await until(lambda: edge.troubles == {})
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)
    await client.close()


async def test_bad_token_affects_only_its_workspace(server: SlackServer) -> None:
    credentials = [CREDENTIALS, Credentials(bot=Secret("xoxb-other"), app=Secret(APP_TOKEN))]
    adapter = SlackAdapter(credentials, base_url=server.base_url, limits=HURRIED)
    edge = FakeEdge()
    server.say("D2", "UBOB", "there", team="T0002")
    server.say("D1", "UANN", "here")
    async with listening(adapter, edge):
        await until(lambda: edge.texts == ["here"])
        await until(lambda: server.unacknowledged == 1)
        await until(lambda: "rejected the token" in edge.troubles.get("workspace 2 of 2", ""))
    with pytest.raises(DeliveryError, match="rejected the token") as caught:
        await adapter.platform.send(outgoing(chat="T0002.D2"), "hello")
    assert not caught.value.gone
    await adapter.close()


async def test_a_workspace_that_does_not_answer_holds_up_no_other(server: SlackServer) -> None:
    server.tokens["xoxb-other"] = "T0002"
    credentials = [CREDENTIALS, Credentials(bot=Secret("xoxb-other"), app=Secret(APP_TOKEN))]
    client = SlackClient(credentials, server.base_url + "/", answer_within_s=20)
    answers = threading.Event()
    server.fail("auth.test", Fault(held=answers))
    assert len(await client.workspaces()) == 1
    assert client.missing is not None
    assert len(await client.workspaces()) == 1  # at once: nobody knocks twice
    assert server.count("auth.test") == 2
    answers.set()
    async with asyncio.timeout(DEADLINE_S):
        while len(await client.workspaces()) == 1:  # noqa: ASYNC110 - of another thread's doing
            await asyncio.sleep(0.02)
    assert server.count("auth.test") == 2
    await client.close()
