"""News of a session at the prompt of `hermes chat`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hermes.cli.chat.conversation import Conversation
from hermes.cli.chat.news import News
from hermes.cli.client import AdminClient
from tests.cli.fake_admin import Answer, Asked, FakeAdmin, Stream, completion
from tests.cli.test_chat import COMPLETIONS, terminal
from tests.cli.test_inspect import VIEW, session


def message(seq: int, role: str, content: str, turn: str = "t9") -> dict[str, Any]:
    return {"seq": seq, "at": 0, "turn": turn, "role": role, "content": content}


class Stored:
    """A session as the daemon shows it."""

    def __init__(self, admin: FakeAdmin, name: str = "s1") -> None:
        self.messages: list[dict[str, Any]] = []
        self.pending: dict[str, Any] | None = None
        self.name = name
        admin.routes[f"GET /api/sessions/{name}"] = self._view
        admin.routes[f"GET /api/sessions/{name}/messages"] = self._page

    def _view(self, _: Asked) -> Answer:
        return Answer(body={**VIEW, "session": session(self.name), "pending": self.pending})

    def _page(self, asked: Asked) -> Answer:
        if "after=" not in asked.path:
            return Answer(body={"messages": self.messages[-1:]})
        after = int(asked.path.partition("after=")[2].partition("&")[0])
        return Answer(body={"messages": [each for each in self.messages if each["seq"] > after]})


def reader(admin: FakeAdmin, *, resumed: bool = False) -> tuple[News, Conversation]:
    client = AdminClient(Path(str(admin.server_address)))
    conversation = Conversation(client, "s1")
    return News(conversation, client, resumed=resumed), conversation


def test_messages_of_other_turns_are_shown_once(admin: FakeAdmin) -> None:
    stored = Stored(admin)
    news, conversation = reader(admin)
    conversation.turns.add("mine")
    stored.messages = [
        message(0, "user", "hello", "mine"),
        message(1, "assistant", "hi", "mine"),
        message(2, "user", "[it has ended]\nwith 9"),
        message(3, "tool", "loud"),
        message(4, "assistant", "I see."),
    ]
    assert news.poll() == ["> [it has ended]\n> with 9", "I see."]
    assert news.poll() == []


def test_resumed_chat_does_not_repeat_old_messages(admin: FakeAdmin) -> None:
    stored = Stored(admin)
    stored.messages = [message(0, "user", "old")]
    news, _ = reader(admin, resumed=True)
    assert news.poll() == []
    stored.messages.append(message(1, "assistant", "new"))
    assert news.poll() == ["new"]


def test_question_of_another_turn_is_shown_with_how_to_answer(admin: FakeAdmin) -> None:
    stored = Stored(admin)
    news, _ = reader(admin)
    stored.pending = {"kind": "approval", "call_id": "c1", "turn_id": "t9", "question": "rm -rf x", "choices": []}
    assert news.poll() == ["Question: rm -rf x (/approve or /deny)"]
    assert news.poll() == []


def test_without_a_session_or_a_daemon_there_is_no_news(admin: FakeAdmin) -> None:
    news, _ = reader(admin)
    assert news.poll() == []
    admin.close()
    assert news.poll() == []


def test_news_appears_above_the_prompt_and_keeps_typed_text(admin: FakeAdmin) -> None:
    admin.routes[COMPLETIONS] = Stream(parts=completion("Started."))
    stored = Stored(admin)
    with terminal("chat") as person:
        person.expect("you> ")
        person.type("go\n")
        person.expect("Started.")
        person.expect("you> ")
        person.type("half a li")
        person.expect("half a li")
        stored.messages = [message(7, "user", "[it has ended]"), message(8, "assistant", "I see.")]
        person.expect("> [it has ended]")
        person.expect("I see.")
        person.expect("you> half a li")
        person.type("\x15\x04")
        person.expect("Continue with")
