"""Updates are confirmed after they were taken, come again until then, and are never skipped."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hermes.adapters.telegram.adapter import TelegramAdapter
from hermes.adapters.telegram.addressed import TelegramAddressing
from hermes.config.secret import Secret
from hermes.domain.errors import (
    AlreadySeenError,
    BadInputError,
    BusyError,
    HermesError,
    PlatformError,
    StoppingError,
    StorageFullError,
)
from hermes.domain.ids import InboundKey, SessionId, TurnId
from hermes.domain.turn.submission import Seen
from tests.adapters.edge import DEADLINE_S, FakeEdge, FileEdge, listening
from tests.adapters.telegram.conftest import HURRIED
from tests.adapters.telegram.outgoing import outgoing
from tests.support.telegram_server import PAGE, TOKEN, Fault, TelegramServer
from tests.support.telegram_state import BOT_ID
from tests.support.waiting import until


async def test_messages_are_taken_in_their_order_and_then_confirmed(
    server: TelegramServer, adapter: TelegramAdapter
) -> None:
    edge = FakeEdge()
    for number in range(5):
        server.say(7 + number % 2, 7 + number % 2, f"hello {number}")
    async with listening(adapter, edge):
        await until(lambda: server.unconfirmed == [])
    assert edge.texts == [f"hello {number}" for number in range(5)]
    assert [each.id for each in edge.taken] == [f"telegram:{BOT_ID}:{1000 + number}" for number in range(5)]
    assert (edge.taken[0].user, edge.taken[0].place.chat, edge.taken[0].place.message) == ("7", "7", "1")


async def test_message_during_a_long_poll_is_received_immediately(
    server: TelegramServer, adapter: TelegramAdapter
) -> None:
    edge = FakeEdge()
    async with listening(adapter, edge):
        await until(lambda: server.polls)
        server.say(7, 7, "hello")
        await until(lambda: edge.texts == ["hello"])
    assert edge.proofs >= 1


async def test_nothing_is_confirmed_before_it_was_taken(server: TelegramServer, adapter: TelegramAdapter) -> None:
    edge = FakeEdge()
    waiting: list[list[int]] = []
    edge.before_take = lambda inbound: waiting.append(server.unconfirmed)
    server.say(7, 7, "one")
    server.say(7, 7, "two")
    async with listening(adapter, edge):
        await until(lambda: server.unconfirmed == [])
    assert waiting == [[1000, 1001], [1000, 1001]]


async def test_unconfirmed_update_is_redelivered_with_the_same_id(server: TelegramServer) -> None:
    server.say(7, 7, "hello")
    ids = set()
    for _ in range(2):
        adapter = TelegramAdapter(Secret(TOKEN), base_url=server.base_url, poll_s=2)
        edge = FakeEdge()
        edge.before_take = lambda inbound: server.fail("getUpdates", Fault.bad_gateway())  # the poll that confirms it
        with pytest.raises(PlatformError):
            await adapter.run(edge)
        await adapter.close()
        assert edge.texts == ["hello"]
        ids.add(edge.taken[0].id)
    assert len(ids) == 1


@pytest.mark.parametrize("refusal", [StoppingError("going"), BusyError("full"), StorageFullError("no space")])
async def test_a_refused_message_is_offered_again_and_holds_its_place(
    refusal: HermesError, server: TelegramServer, adapter: TelegramAdapter
) -> None:
    edge = FakeEdge()
    edge.refusals = [refusal, refusal]
    server.say(7, 7, "one")
    server.say(7, 7, "two")
    async with listening(adapter, edge):
        await until(lambda: server.unconfirmed == [])
    assert [each.text for each in edge.offered] == ["one", "one", "one", "two"]
    assert edge.texts == ["one", "two"]


async def test_a_message_that_was_seen_before_is_confirmed(server: TelegramServer, adapter: TelegramAdapter) -> None:
    edge = FakeEdge()
    key = InboundKey("telegram:1:1")
    seen = Seen(key=key, session=SessionId("s"), turn=TurnId("t"), fingerprint=b"", at=0.0)
    edge.refusals = [AlreadySeenError(seen)]
    server.say(7, 7, "one")
    async with listening(adapter, edge):
        await until(lambda: server.unconfirmed == [])
    assert len(edge.offered) == 1


async def test_refused_message_does_not_block_the_next(server: TelegramServer, adapter: TelegramAdapter) -> None:
    edge = FakeEdge()
    edge.refusals = [BadInputError("no")]
    server.say(7, 7, "one")
    server.say(7, 7, "two")
    async with listening(adapter, edge):
        await until(lambda: edge.texts == ["two"])


async def test_updates_that_we_do_not_understand_are_skipped(
    server: TelegramServer, adapter: TelegramAdapter
) -> None:
    edge = FakeEdge()
    server.post("message", {"from": {"id": 1}, "text": "no chat, no id"})
    server.post("message", {"message_id": 1, "chat": "odd", "from": {"id": 1}, "text": "odd"})
    server.say(7, 7, "hello")
    async with listening(adapter, edge):
        await until(lambda: server.unconfirmed == [])
    assert edge.texts == ["hello"]


async def test_why_a_press_did_nothing_is_shown_to_whoever_pressed_alone(
    server: TelegramServer, adapter: TelegramAdapter
) -> None:
    edge = FakeEdge()
    edge.aside = "not yours " * 30
    message = {"message_id": 1, "chat": {"id": -7, "type": "group"}}
    person = {"id": 8, "is_bot": False, "first_name": "Bob"}
    server.post("callback_query", {"id": "q1", "from": person, "message": message, "data": "a:token:1"})
    async with listening(adapter, edge):
        await until(lambda: server.answered_queries == ["q1"])
    assert server.toasts == [edge.aside[:200]]
    assert server.replies(-7) == []


async def test_a_press_is_taken_first_and_answered_then(server: TelegramServer, adapter: TelegramAdapter) -> None:
    edge = FakeEdge()
    edge.before_take = lambda inbound: answered_before.extend(server.answered_queries)
    answered_before: list[str] = []
    server.say(7, 7, "hello")
    data = {"message_id": 1, "chat": {"id": 7, "type": "private"}}
    person = {"id": 7, "is_bot": False, "first_name": "Ann"}
    server.post("callback_query", {"id": "q1", "from": person, "message": data, "data": "a:token:1"})
    async with listening(adapter, edge):
        await until(lambda: server.answered_queries == ["q1"])
    assert answered_before == []
    assert (edge.taken[1].answers, edge.taken[1].choice, edge.taken[1].text) == ("token", 1, "")


@pytest.mark.parametrize(
    ("method", "fault", "says"),
    [
        ("getUpdates", Fault.bad_gateway(), "or a proxy failed: Bad Gateway (502)"),
        ("getMe", Fault.bad_gateway(), "or a proxy failed: Bad Gateway (502)"),
        ("getUpdates", Fault(status=500), "or a proxy failed"),
        ("getUpdates", Fault.flood(3), "retry in 3 s"),
        ("getUpdates", Fault(page=PAGE), "invalid answer"),
        ("getUpdates", Fault(page=b'{"ok": true}'), "invalid answer"),
        ("getMe", Fault(status=404, page=PAGE), "not a Bot API server; check telegram.base_url"),
        ("getUpdates", Fault(lost=True), "cannot be reached"),
        ("getUpdates", Fault(delay_s=60), "did not answer in time"),
        (
            "getUpdates",
            Fault(status=409, description="Conflict: can't use getUpdates while webhook is active"),
            "webhook",
        ),
    ],
)
async def test_a_failed_poll_says_what_happened(method: str, fault: Fault, says: str, server: TelegramServer) -> None:
    within_s = 1 if fault.delay_s else 20
    adapter = TelegramAdapter(
        Secret(TOKEN), base_url=server.base_url, limits=HURRIED, poll_s=0, answer_within_s=within_s
    )
    server.fail(method, fault)
    with pytest.raises(PlatformError, match=says.replace("(", r"\(").replace(")", r"\)")):
        await adapter.run(FakeEdge())
    edge = FakeEdge()
    server.say(7, 7, "hello")
    async with listening(adapter, edge):
        await until(lambda: edge.texts == ["hello"])
    await adapter.close()


async def test_a_wrong_token_is_named_but_not_shown(server: TelegramServer) -> None:
    adapter = TelegramAdapter(Secret("4242:wrong"), base_url=server.base_url)
    with pytest.raises(PlatformError, match="rejected the bot token; check TELEGRAM_BOT_TOKEN") as caught:
        await adapter.run(FakeEdge())
    assert "4242:wrong" not in str(caught.value)
    await adapter.close()


async def test_unreachable_address_is_explained() -> None:
    adapter = TelegramAdapter(Secret(TOKEN), base_url="http://127.0.0.1:9")
    with pytest.raises(PlatformError, match="cannot be reached"):
        await adapter.run(FakeEdge())
    await adapter.close()


async def test_second_poller_is_reported(server: TelegramServer) -> None:
    adapter = TelegramAdapter(Secret(TOKEN), base_url=server.base_url)  # whose poll waits until the other comes
    async with listening(adapter, FakeEdge()) as first:
        await until(lambda: server.polls)
        other = TelegramAdapter(Secret(TOKEN), base_url=server.base_url, poll_s=2)
        async with listening(other, FakeEdge()):
            with pytest.raises(PlatformError, match="another program polls this bot's updates"):
                await asyncio.wait_for(first, DEADLINE_S)
        await other.close()
    await adapter.close()


async def test_an_album_is_one_message(server: TelegramServer, adapter: TelegramAdapter) -> None:
    edge = FakeEdge()

    def picture(number: int, **more: Any) -> None:
        server.say(7, 7, "", photo=[{"file_id": str(number)}], **more)

    server.fail("getUpdates", *[Fault(delay_s=0.1)] * 9)  # Telegram is far away
    picture(1, media_group_id="1")
    picture(2, media_group_id="1", caption="my cats")
    async with listening(adapter, edge):
        await until(lambda: server.count("getUpdates") > 1)
        picture(3, media_group_id="1")  # it comes a little later
        picture(4, media_group_id="2")
        picture(5)
        await until(lambda: server.unconfirmed == [])
    taken = [(each.text, [file.file_id for file in each.attachments]) for each in edge.taken]
    assert taken == [("my cats", ["1", "2", "3"]), ("", ["4"]), ("", ["5"])]
    assert edge.taken[0].id == f"telegram:{BOT_ID}:1001"
    assert edge.taken[0].pieces == tuple(f"telegram:{BOT_ID}:{number}" for number in (1000, 1001, 1002))


async def test_an_edit_within_an_album_is_one_of_all_of_it(server: TelegramServer, adapter: TelegramAdapter) -> None:
    edge = FakeEdge()

    def picture(number: int) -> dict[str, Any]:
        return {"photo": [{"file_id": str(number)}], "media_group_id": "1"}

    first = server.say(7, 7, "", **picture(1), caption="my dogs")
    second = server.say(7, 7, "", **picture(2))
    server.rewrite(7, first, "", **picture(1), caption="my cats")  # while its pictures come in
    async with listening(adapter, edge):
        await until(lambda: server.unconfirmed == [])
        server.rewrite(7, second, "", **picture(3), caption="the second is new")
        server.rewrite(7, first, "", **picture(1))
        await until(lambda: server.unconfirmed == [])
    told = [(each.text, [file.file_id for file in each.attachments], each.edited) for each in edge.taken]
    assert told == [
        ("my cats", ["1", "2"], False),
        ("my cats", ["1", "3"], True),
        ("the second is new", ["1", "3"], True),
    ]
    assert {each.place.message for each in edge.taken} == {str(first)}
    assert len({each.id for each in edge.taken}) == 3


async def test_a_chat_that_takes_its_time_holds_up_no_other(server: TelegramServer, adapter: TelegramAdapter) -> None:
    edge = FakeEdge()
    gate = edge.gates["7"] = asyncio.Event()
    for number in range(3):
        server.say(7, 7, f"slow {number}")
    async with listening(adapter, edge):
        await until(lambda: len(edge.offered) == 1)
        server.say(8, 8, "quick")
        await until(lambda: edge.texts == ["quick"])
        assert server.unconfirmed == [1000, 1001, 1002, 1003]
        gate.set()
        await until(lambda: server.unconfirmed == [])
    assert edge.texts == ["quick", "slow 0", "slow 1", "slow 2"]


@pytest.mark.parametrize("album", ["", "9"])
async def test_slow_file_delays_messages_but_no_command(
    album: str, server: TelegramServer, adapter: TelegramAdapter
) -> None:
    edge = FileEdge()
    more = {"media_group_id": album} if album else {}
    async with listening(adapter, edge):
        server.say(7, 7, "", voice={"file_id": "1"}, **more)
        server.say(7, 7, "behind it")
        server.say(7, 7, "/stop")
        server.say(7, 7, "/no such command")
        asked = await adapter.platform.send(outgoing("well?", choices=("yes", "no")), "well?")
        server.press(7, int(asked), "no", 7)
        await until(lambda: edge.texts == ["/stop", "/no such command", "no"])
        edge.may.set()
        await until(lambda: server.unconfirmed == [])
    assert edge.texts == ["/stop", "/no such command", "no", "", "behind it"]


async def test_the_commands_are_offered_and_a_failure_of_that_is_none(server: TelegramServer) -> None:
    adapter = TelegramAdapter(Secret(TOKEN), base_url=server.base_url, poll_s=1)
    server.fail("setMyCommands", Fault.bad_gateway())
    server.fail("getUpdates", Fault(), Fault.bad_gateway())
    with pytest.raises(PlatformError):
        await adapter.run(FakeEdge())
    async with listening(adapter, FakeEdge()):
        await until(lambda: "new" in server.menu and "help" in server.menu)
    await adapter.close()


async def test_supergroup_keeps_conversations_and_addressing(
    server: TelegramServer,
) -> None:
    edge = FakeEdge()
    addressing = TelegramAddressing(free_response_chats=("-5",))
    adapter = TelegramAdapter(
        Secret(TOKEN), base_url=server.base_url, limits=HURRIED, poll_s=1, addressing=addressing
    )
    server.say(-5, 7, "before")
    server.migrate(-5, -1005)
    server.say(-1005, 7, "after")
    server.say(-1006, 7, "not for the bot")
    async with listening(adapter, edge):
        await until(lambda: server.unconfirmed == [])
    await adapter.close()
    assert [(each.text, each.place.chat, each.former_chat) for each in edge.taken] == [
        ("before", "-5", ""),
        ("after", "-1005", "-5"),
    ]
    assert edge.moved == {"-1005": "-5"}
