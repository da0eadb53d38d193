"""Live view of a session over a daemon that comes and goes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from hermes.client.api_error import ApiError
from hermes.tui.chat.figures import LinkState
from hermes.tui.chat.session_link import SessionLink
from hermes.tui.view_model import BlockKind, Delivery
from tests.support.waiting import until
from tests.tui.fake_daemon import SESSION, FakeDaemon, session_json


@asynccontextmanager
async def linked(daemon: FakeDaemon, **options: Any) -> AsyncIterator[SessionLink]:
    link = SessionLink(daemon, SESSION, **options)
    link.start()
    try:
        yield link
    finally:
        await link.close()


def texts(link: SessionLink) -> list[tuple[BlockKind, str]]:
    return [(each.kind, each.text) for each in link.view.blocks]


async def test_message_is_sent_and_its_answer_is_followed() -> None:
    daemon = FakeDaemon()
    async with linked(daemon, workdir="/project") as link:
        link.send("hello")
        await until(lambda: daemon.is_followed("t1"))
        daemon.emit("t1", "run.started", stored="2")
        daemon.emit("t1", "message.delta", text="Hi")
        await until(lambda: texts(link) == [(BlockKind.USER, "hello"), (BlockKind.ANSWER, "Hi")])
        daemon.emit("t1", "run.completed", stored="3", output="Hi!")
        await until(lambda: not link.view.turn and link.figures.tokens == 100)
    assert texts(link)[-1] == (BlockKind.ANSWER, "Hi!")
    assert (link.figures.context_percent, link.figures.cost_usd) == (25, 0.25)
    posted = [path for method, path, _ in daemon.asked if method == "POST"]
    assert posted == [f"/sessions/{SESSION}/workdir", "/v1/runs"]


async def test_message_without_a_daemon_is_kept_and_sent_once_one_is_back() -> None:
    daemon = FakeDaemon()
    async with linked(daemon) as link:
        await until(lambda: link.connection is LinkState.ONLINE)
        daemon.cut()
        await until(lambda: link.connection is LinkState.AWAY)
        link.send("later")
        assert [each.state for each in link.view.pending] == [Delivery.KEPT]
        daemon.down = False
        await until(lambda: texts(link) == [(BlockKind.USER, "later")])
    assert not link.view.pending


async def test_unconfirmed_message_is_sent_again_under_the_same_key() -> None:
    daemon = FakeDaemon()
    daemon.hold_answers = True
    async with linked(daemon) as link:
        link.send("once")
        await until(lambda: len(daemon.keys) == 1)
        daemon.hold_answers = False
        await until(lambda: texts(link) == [(BlockKind.USER, "once")])
    assert len(daemon.keys) == 2
    assert len(set(daemon.keys)) == 1


async def test_answer_goes_on_after_the_daemon_was_killed() -> None:
    daemon = FakeDaemon()
    async with linked(daemon) as link:
        link.send("hello")
        await until(lambda: daemon.is_followed("t1"))
        daemon.emit("t1", "run.started", stored="2", attempt=1)
        daemon.emit("t1", "message.delta", text="half an ans")
        await until(lambda: len(link.view.blocks) == 2)
        daemon.cut()
        await until(lambda: link.connection is LinkState.AWAY)
        daemon.session = session_json(running_turn="t1")
        daemon.messages = [
            {"seq": 1, "turn": "t1", "role": "user", "content": "hello"},
            {"seq": 4, "turn": "t1", "role": "user", "content": "for the model", "note": True},
        ]
        daemon.down = False
        await until(lambda: link.connection is LinkState.ONLINE and daemon.is_followed("t1"))
        daemon.emit("t1", "run.started", stored="5", attempt=2)
        daemon.emit("t1", "message.delta", text="The whole answer")
        daemon.emit("t1", "run.completed", stored="6", output="The whole answer")
        await until(lambda: not link.view.turn)
    assert texts(link) == [(BlockKind.USER, "hello"), (BlockKind.ANSWER, "The whole answer")]


async def test_resumed_session_shows_its_messages_and_follows_its_running_turn() -> None:
    daemon = FakeDaemon()
    daemon.session = session_json(running_turn="t9")
    daemon.messages = [
        {"seq": 1, "turn": "t8", "role": "user", "content": "before"},
        {"seq": 2, "turn": "t8", "role": "assistant", "content": "answered"},
        {"seq": 3, "turn": "t9", "role": "user", "content": "now"},
        {"seq": 4, "turn": "t9", "role": "assistant", "content": "left to its run"},
    ]
    async with linked(daemon) as link:
        await until(lambda: daemon.is_followed("t9"))
        daemon.emit("t9", "run.started", stored="5")
        daemon.emit("t9", "message.delta", text="so far")
        await until(lambda: len(link.view.blocks) == 4)
    assert [text for _, text in texts(link)] == ["before", "answered", "now", "so far"]


async def test_turn_that_was_started_elsewhere_is_shown_with_its_message() -> None:
    daemon = FakeDaemon()
    daemon.session = session_json()
    async with linked(daemon) as link:
        await until(lambda: link.connection is LinkState.ONLINE)
        daemon.messages = [{"seq": 1, "turn": "t5", "role": "user", "content": "from a phone"}]
        daemon.publish("/api/events", "run.started", stored="7", turn_id="t5", session_id=SESSION)
        await until(lambda: daemon.is_followed("t5"))
        daemon.emit("t5", "run.started", stored="8")
        await until(lambda: texts(link) == [(BlockKind.USER, "from a phone")])


async def test_refused_message_returns_to_the_person() -> None:
    def refuse(_: Any) -> Any:
        raise ApiError("too long", status=413, code="too_long")

    daemon = FakeDaemon()
    daemon.routes["POST /v1/runs"] = refuse
    async with linked(daemon) as link:
        link.send("much")
        await until(lambda: link.refused == "much")
    assert not link.view.pending
    assert link.view.blocks[-1].kind is BlockKind.NOTICE


async def test_command_that_starts_a_session_opens_it() -> None:
    daemon = FakeDaemon()
    daemon.session = session_json()
    daemon.routes[f"POST /api/sessions/{SESSION}/commands"] = lambda _: {
        "ok": True,
        "text": "New session.",
        "session_id": "s2",
        "choices": ["yes", "no"],
    }
    async with linked(daemon) as link:
        await until(lambda: link.connection is LinkState.ONLINE)
        reply = await link.command("/new")
        assert (reply.text, reply.choices, link.view.session) == ("New session.", ("yes", "no"), "s2")


async def test_steering_message_is_shown_until_it_is_taken() -> None:
    daemon = FakeDaemon()
    daemon.session = session_json()
    reply = {"ok": True, "text": "Taken.", "session_id": SESSION, "turn_id": "t7"}
    daemon.routes[f"POST /api/sessions/{SESSION}/commands"] = lambda _: reply
    async with linked(daemon) as link:
        link.send("go")
        await until(lambda: daemon.is_followed("t1"))
        await link.command("/steer be brief")
        assert [(each.text, each.state) for each in link.view.pending] == [("be brief", Delivery.STEERING)]
        daemon.emit("t1", "steered", message_turn_id="t7")
        await until(lambda: texts(link)[-1] == (BlockKind.USER, "be brief"))
    assert not link.view.pending


async def test_message_that_a_killed_daemon_had_taken_is_shown_in_its_place() -> None:
    daemon = FakeDaemon()
    daemon.session = session_json()
    reply = {"ok": True, "text": "", "session_id": SESSION, "turn_id": "t7"}
    daemon.routes[f"POST /api/sessions/{SESSION}/commands"] = lambda _: reply
    async with linked(daemon) as link:
        link.send("go")
        await until(lambda: daemon.is_followed("t1"))
        await link.command("/steer be brief")
        daemon.cut()
        await until(lambda: link.connection is LinkState.AWAY)
        daemon.messages = [
            {"seq": 1, "turn": "t1", "role": "user", "content": "go"},
            {"seq": 3, "turn": "t7", "role": "user", "content": "be brief"},
            {"seq": 4, "turn": "t1", "role": "assistant", "content": "Gone."},
        ]
        daemon.down = False
        await until(lambda: link.connection is LinkState.ONLINE)
        assert not daemon.is_followed("t7")
    assert [text for _, text in texts(link)] == ["go", "be brief", "Gone."]
    assert (link.view.pending, link.view.turn) == ((), "")


async def test_result_of_a_tool_call_is_loaded_when_it_ends() -> None:
    daemon = FakeDaemon()
    async with linked(daemon) as link:
        link.send("look")
        await until(lambda: daemon.is_followed("t1"))
        daemon.messages = [{"seq": 2, "turn": "t1", "role": "tool", "tool_call_id": "c", "content": "a.txt"}]
        daemon.emit("t1", "tool.started", stored="3", call_id="c", name="terminal", summary="ls")
        daemon.emit("t1", "tool.completed", stored="4", call_id="c", name="terminal", outcome="ok", took_s=1)
        await until(lambda: link.view.blocks[-1].result == "a.txt")
    assert link.view.blocks[-1].took_s == 1
