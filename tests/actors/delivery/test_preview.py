from __future__ import annotations

from hermes.actors.delivery.preview import CURSOR, Stream
from hermes.domain.events import CallBegan, Event, Notice, ReasoningDelta, TextDelta, TextReset
from hermes.domain.ids import SessionId, TurnId

S, T = SessionId("s"), TurnId("t")
STILL_TRYING = Notice(session=S, turn=T, text="still trying after 2 min")
HELLO = TextDelta(session=S, turn=T, text="Hello")


def shown(*events: Event) -> str:
    stream = Stream()
    for event in events:
        stream = stream.after(event)
    return stream.shown()


def test_a_notice_is_shown_until_something_moves() -> None:
    assert shown(STILL_TRYING) == "⏳ still trying after 2 min"
    assert shown(STILL_TRYING, HELLO) == "Hello" + CURSOR
    call = CallBegan(session=S, turn=T, call="c", name="look", summary="look at it")
    assert shown(STILL_TRYING, call) == "⚙ look at it"
    assert shown(HELLO, TextReset(session=S, turn=T), STILL_TRYING) == "⏳ still trying after 2 min"


def test_reasoning_is_not_shown() -> None:
    assert shown(ReasoningDelta(session=S, turn=T, text="hm")) == ""
    assert shown(ReasoningDelta(session=S, turn=T, text="hm"), HELLO) == "Hello" + CURSOR
