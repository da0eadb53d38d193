"""The reducer from events of the daemon to blocks."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.domain.values import replace
from hermes.tui.view_model import (
    BlockKind,
    ChatView,
    Delivery,
    PendingMessage,
    gist,
    reduce,
    with_message,
    with_pending,
    with_transcript,
)


def play(*events: tuple[str, dict[str, Any]], view: ChatView | None = None) -> ChatView:
    view = view or ChatView(session="s")
    for name, fields in events:
        view = reduce(view, name, {"turn_id": "t", **fields})
    return view


def texts(view: ChatView) -> list[tuple[BlockKind, str]]:
    return [(each.kind, each.text) for each in view.blocks]


def test_deltas_grow_one_answer_and_the_stored_text_replaces_it() -> None:
    view = play(("run.started", {}), ("message.delta", {"text": "He"}), ("message.delta", {"text": "llo"}))
    assert texts(view) == [(BlockKind.ANSWER, "Hello")]
    assert view.turn == "t"
    view = play(("run.completed", {"output": "Hello!"}), view=view)
    assert texts(view) == [(BlockKind.ANSWER, "Hello!")]
    assert (view.turn, view.blocks[0].is_open) == ("", False)


def test_second_attempt_replaces_the_text_of_the_first() -> None:
    view = play(
        ("run.started", {"attempt": 1}),
        ("message.delta", {"text": "half an ans"}),
        ("run.started", {"attempt": 2}),
        ("message.delta", {"text": "whole"}),
        ("run.completed", {"output": "whole answer"}),
    )
    assert texts(view) == [(BlockKind.ANSWER, "whole answer")]


def test_text_after_a_tool_call_is_a_block_of_its_own() -> None:
    view = play(
        ("message.delta", {"text": "I look."}),
        ("tool.started", {"call_id": "1", "name": "terminal", "summary": "terminal: ls"}),
        ("tool.progress", {"call_id": "1", "text": "a"}),
        ("tool.progress", {"call_id": "1", "text": "b"}),
        ("tool.completed", {"call_id": "1", "name": "terminal", "outcome": "ok"}),
        ("message.delta", {"text": "Done."}),
    )
    assert texts(view) == [
        (BlockKind.ANSWER, "I look."),
        (BlockKind.TOOL, "a\nb\n"),
        (BlockKind.ANSWER, "Done."),
    ]
    assert (view.blocks[1].title, view.blocks[1].outcome, view.blocks[1].is_open) == ("terminal: ls", "ok", False)


def test_approval_is_open_until_it_is_answered() -> None:
    asked = {"call_id": "1", "question": "May I?", "choices": ["once", "deny"]}
    view = play(("approval.request", asked))
    assert view.prompt is not None
    assert (view.prompt.approval, view.prompt.choices) == (True, ("once", "deny"))
    assert play(("answered", {"call_id": "1"}), view=view).prompt is None


def test_accepted_turn_waits_until_it_starts() -> None:
    view = play(("run.started", {}), ("run.accepted", {"turn_id": "u"}))
    assert [(each.turn, each.state) for each in view.pending] == [("u", Delivery.QUEUED)]
    assert play(("run.started", {"turn_id": "u"}), view=view).pending == ()
    assert play(("steered", {"message_turn_id": "u"}), view=view).pending == ()


def test_pending_message_joins_the_conversation_when_its_turn_starts() -> None:
    typed = PendingMessage(key="k", text="next", state=Delivery.SENDING)
    view = with_pending(play(("run.started", {}), ("message.delta", {"text": "one"})), typed)
    view = with_pending(view, replace(typed, state=Delivery.QUEUED, turn="u"))
    view = play(("run.accepted", {"turn_id": "u"}), view=view)
    assert [(each.text, each.state) for each in view.pending] == [("next", Delivery.QUEUED)]
    view = play(("run.started", {"turn_id": "u"}), view=view)
    assert (texts(view)[-1], view.pending) == ((BlockKind.USER, "next"), ())


def test_end_of_a_turn_is_shown_before_the_next_one() -> None:
    view = with_message(play(("message.delta", {"text": "half"})), "u", "next")
    view = play(("run.cancelled", {"error": {"message": "stopped"}}), view=view)
    assert [text for _, text in texts(view)] == ["half", "stopped", "next"]


def test_answer_that_arrives_after_the_next_turn_began_stays_with_its_turn() -> None:
    view = with_message(play(("run.started", {})), "t", "first")
    view = with_message(view, "u", "second")
    view = play(("run.started", {"turn_id": "u"}), ("message.delta", {"turn_id": "u", "text": "to"}), view=view)
    view = play(("run.completed", {"output": "one"}), view=view)
    view = play(("message.delta", {"turn_id": "u", "text": " the second"}), view=view)
    assert [text for _, text in texts(view)] == ["first", "one", "second", "to the second"]


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        ('{"command": "ls", "outside_sandbox": true}', "ls"),
        ('{"url": "https://example.org"}', "https://example.org"),
        ('{"a": "1", "b": "2"}', '{"a": "1", "b": "2"}'),
        ('{"command": 5}', '{"command": 5}'),
        ("[1]", "[1]"),
        ("not json", "not json"),
    ],
)
def test_title_of_a_stored_call_is_its_command(arguments: str, title: str) -> None:
    assert gist(arguments) == title


def test_stored_tool_calls_get_their_results() -> None:
    call = {"id": "c", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}
    stored: list[Any] = [
        {"seq": 1, "turn": "t", "role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url"}]},
        {"seq": 2, "turn": "t", "role": "assistant", "content": None, "tool_calls": [call]},
        {"seq": 3, "turn": "t", "role": "tool", "content": "a.txt", "tool_call_id": "c"},
    ]
    view = with_transcript(ChatView(session="s"), stored)
    assert view.blocks[0].text == "look\n[image]"
    tool = view.blocks[1]
    assert (tool.name, tool.title, tool.result, tool.outcome) == ("terminal", "ls", "a.txt", "ok")


def test_failed_turn_leaves_its_text_and_a_notice() -> None:
    view = play(("message.delta", {"text": "half"}), ("run.failed", {"error": {"message": "no model"}}))
    assert texts(view) == [(BlockKind.ANSWER, "half"), (BlockKind.NOTICE, "no model")]


def test_message_and_transcript_are_shown_once() -> None:
    view = with_message(with_message(ChatView(session="s"), "t", "hi"), "t", "hi")
    stored: list[Any] = [{"seq": 1, "role": "user", "content": "a"}, {"seq": 2, "role": "assistant", "content": "b"}]
    assert len(with_transcript(with_transcript(view, stored), stored).blocks) == 3


def test_unknown_event_changes_nothing() -> None:
    view = ChatView(session="s")
    assert reduce(view, "someday.new", {}) is view


def test_stored_message_names_its_pictures() -> None:
    name = "0" * 64 + ".png"
    parts = [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": f"hermes-media:{name}"}},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    ]
    view = with_transcript(ChatView(session="s"), [{"seq": 1, "turn": "t", "role": "user", "content": parts}])
    assert (view.blocks[0].text, view.blocks[0].pictures) == ("look\n[image]", (name,))
