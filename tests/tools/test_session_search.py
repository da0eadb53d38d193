from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import StorageError, UnknownSessionError
from hermes.ports.sessions import StoredMessage
from hermes.search.index import Hit
from hermes.tools.schema import check_arguments
from hermes.tools.session_search import session_search_tool
from hermes.tools.tool import ToolContext, ToolError, ToolResult
from hermes.types import Effect, EncodedMessage, Seq, Session, SessionId, TurnId
from tests.fakes import a_session

DAY_S = 86_400.0
CONTEXT = ToolContext(session=SessionId("mine"), turn=TurnId("t"), call="c", platform="api", folder=Path("/nowhere"))


def a_hit(session: str, seq: int) -> Hit:
    return Hit(
        session=SessionId(session),
        root=SessionId("root"),
        seq=Seq(seq),
        at=0.0,
        role="user",
        platform="api",
        snippet="a >>>fox<<<",
        score=1.0,
    )


def stored(seq: int, role: str, content: Any) -> StoredMessage:
    message = EncodedMessage(json.dumps({"role": role, "content": content}).encode())
    return StoredMessage(seq=Seq(seq), at=0.0, turn=TurnId("t"), message=message)


class World:
    def __init__(self) -> None:
        self.found: list[Hit] = []
        self.searched: list[tuple[str, dict[str, Any]]] = []
        self.read: list[tuple[SessionId, Seq | None, int]] = []
        self.transcripts: dict[str, list[StoredMessage]] = {}
        self.sessions: list[Session] = []
        self.trouble: StorageError | None = None
        self.tool = session_search_tool(
            search=self.search, messages=self.messages, recent=self.recent, clock=lambda: 10 * DAY_S
        )

    async def search(self, query: str, **options: Any) -> Sequence[Hit]:
        if self.trouble:
            raise self.trouble
        self.searched.append((query, options))
        return self.found

    async def messages(self, session: SessionId, seq: Seq | None, n: int) -> Sequence[StoredMessage]:
        self.read.append((session, seq, n))
        if session not in self.transcripts:
            raise UnknownSessionError(f"there is no session {session}")
        return self.transcripts[session]

    async def recent(self, limit: int) -> Sequence[Session]:
        return self.sessions[:limit]

    async def run(self, **arguments: Any) -> str:
        result = await self.tool.run(CONTEXT, **check_arguments(self.tool.parameters, arguments))
        assert isinstance(result, ToolResult)
        return result.text


@pytest.fixture
def world() -> World:
    return World()


async def test_a_query_shows_each_place_with_what_is_around_it(world: World) -> None:
    world.found = [a_hit("s1", 4), a_hit("mine", 9)]
    world.transcripts = {
        "s1": [stored(3, "assistant", "before"), stored(4, "user", [{"type": "text", "text": "a fox"}])]
    }
    text = await world.run(query="fox")
    assert "1. session s1, seq 4, 1970-01-01 00:00 UTC, user\n   a >>>fox<<<\n   around it:" in text
    assert "[3] 1970-01-01 00:00 UTC assistant: before" in text
    assert "[4] 1970-01-01 00:00 UTC user: a fox" in text
    assert "mine" not in text, "what is being said is in the context already"
    assert world.read == [("s1", 4, 2)]


async def test_what_narrows_a_search_is_passed_on(world: World) -> None:
    assert "Nothing was found" in await world.run(query="fox", session="s1", role="user", days=3, limit=99)
    assert world.searched == [("fox", {"limit": 20, "session": "s1", "role": "user", "since": 7 * DAY_S})]
    await world.run(query="fox", limit=-1)
    assert world.searched[-1] == ("fox", {"limit": 1, "session": None, "role": None, "since": None})


async def test_a_place_can_be_read_and_scrolled_from(world: World) -> None:
    world.transcripts = {"s1": [stored(7, "user", "hello"), stored(9, "assistant", None)], "empty": []}
    text = await world.run(session="s1", seq=8)
    assert text.splitlines() == [
        "session s1, seq 7 to 9:",
        "[7] 1970-01-01 00:00 UTC user: hello",
        "[9] 1970-01-01 00:00 UTC assistant: (no text)",
        "Earlier ones: seq=7. Later ones: seq=9.",
    ]
    assert "no messages" in await world.run(session="empty")
    assert world.read == [("s1", 8, 10), ("empty", None, 10)]


async def test_long_messages_are_cut_and_say_so(world: World) -> None:
    world.transcripts = {"s1": [stored(1, "user", "x" * 5000)]}
    assert "… (3000 more characters)" in await world.run(session="s1")


async def test_without_anything_the_latest_sessions_are_listed(world: World) -> None:
    assert await world.run() == "There are no sessions yet."
    world.sessions = [replace(a_session("s1"), messages=3), a_session("mine")]
    lines = (await world.run()).splitlines()
    assert lines[0].startswith("session s1, api, last active ")
    assert lines[0].endswith("3 messages, idle")
    assert lines[1].startswith("session mine (this one)")


async def test_what_goes_wrong_is_told_to_the_model(world: World) -> None:
    with pytest.raises(ToolError, match="there is no session nobody"):
        await world.run(session="nobody")
    world.trouble = StorageError("the search index cannot be used")
    with pytest.raises(ToolError, match="cannot be used"):
        await world.run(query="x")


def test_the_tool_tells_what_the_agent_must_know(world: World) -> None:
    tool = world.tool
    assert (tool.name, tool.toolset, tool.parallel, tool.effect) == (
        "session_search", "session_search", True, Effect.PURE
    )  # fmt: skip
    assert tool.parameters["required"] == []
