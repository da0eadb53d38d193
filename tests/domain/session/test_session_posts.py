"""Posts into the chat of a session: the model sees them with the next turn, and never inside a step."""

from __future__ import annotations

from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.session.protocol import NotePost
from hermes.domain.source import Place
from tests.actors.talk import SessionTalk, reads


def post(talk: SessionTalk, text: str) -> None:
    place = Place(platform="toy", chat="c")
    outgoing = OutboxMessage(id=f"post-{text}", kind=OutboxKind.NOTICE, place=place, text=text, at=0.0)
    talk.do(NotePost(outgoing=outgoing, shown=text))


def mentions(talk: SessionTalk, text: str) -> list[int]:
    return [number for number, line in enumerate(talk.shown()) if text in line]


def test_post_is_shown_with_the_next_turn_once() -> None:
    talk = SessionTalk()
    post(talk, "the backup failed")
    talk.say("which one?")
    assert len(mentions(talk, "the backup failed")) == 1
    talk.answer()
    talk.say("and now?")
    assert len(mentions(talk, "the backup failed")) == 1


def test_post_does_not_part_a_call_from_its_result() -> None:
    talk = SessionTalk()
    talk.say("look")
    talk.reply(reads("c1"))
    post(talk, "the backup failed")
    talk.crash()
    talk.returns("c1")
    lines = talk.shown()
    assert lines[lines.index("assistant calls c1") + 1] == "c1: done"
    assert mentions(talk, "the backup failed") == []
    talk.answer()
    talk.say("which one?")
    assert len(mentions(talk, "the backup failed")) == 1
