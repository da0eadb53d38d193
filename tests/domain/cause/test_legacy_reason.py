"""Texts of older stores get the codes that replaced them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hermes.domain.cause.cause import CompressionCause, EndCause, InterruptionCause, StopCause
from hermes.domain.cause.legacy_reason import (
    compression_cause,
    legacy_end_cause,
    legacy_interruption,
    legacy_origin,
    stop_cause,
)
from hermes.domain.records import CompressionStarted, MarkedResumePending, TurnInterrupted
from hermes.domain.session.fold.state_fold import evolve
from hermes.domain.session.note import NOTE_MARK
from hermes.domain.session.protocol import Resume
from hermes.domain.session.state import Phase, announced_cause, interruption_cause
from hermes.domain.turn.message import EncodedMessage, MessageOrigin
from hermes.domain.turn.turn_failure import Failure, FailureKind
from tests.actors.talk import SessionTalk


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("the daemon stopped without warning", InterruptionCause.CRASH),
        ("the daemon stopped without warning; the daemon keeps crashing", InterruptionCause.CRASH),
        ("the session's actor crashed", InterruptionCause.ACTOR_CRASH),
        ("restart: new version", InterruptionCause.RESTART),
        ("shutdown: /stop by telegram:7", InterruptionCause.SHUTDOWN),
        ("lunch", InterruptionCause.UNKNOWN),
    ],
)
def test_an_old_interruption_has_a_cause_in_a_record_and_in_a_row(reason: str, cause: InterruptionCause) -> None:
    assert legacy_interruption(reason) is cause
    talk = SessionTalk()
    talk.say("a")
    cut = evolve(talk.session, TurnInterrupted(at=2, turn=talk.turn.id, reason=reason))
    assert interruption_cause(cut) is cause
    assert interruption_cause(replace(cut, interruption=InterruptionCause.UNKNOWN)) is cause
    marked = evolve(talk.session, MarkedResumePending(at=2, reason=reason))
    assert announced_cause(marked) is cause
    assert announced_cause(replace(marked, resume_cause=InterruptionCause.UNKNOWN)) is cause


def test_an_old_suspended_turn_continues_with_a_note_that_names_its_cause() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.session = replace(
        talk.session,
        phase=Phase.SUSPENDED,
        reason="maintenance",
        turn=replace(talk.turn, written="So far"),
    )
    talk.do(Resume(reason="operator"))
    assert "This turn was interrupted: the session was suspended." in talk.shown()[-1]


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("compression", EndCause.COMPRESSION),
        ("taken back to before its beginning", EndCause.TAKEN_BACK),
        ("idle for 24 h", EndCause.UNKNOWN),
    ],
)
def test_an_old_end_has_a_cause(reason: str, cause: EndCause) -> None:
    assert legacy_end_cause(reason) is cause


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("the context overflowed", CompressionCause.OVERFLOW),
        ("somebody asked for it", CompressionCause.ASKED),
        ("the context is nearly full", CompressionCause.FULL),
        ("anything else", CompressionCause.FULL),
    ],
)
def test_an_old_compression_has_a_cause(reason: str, cause: CompressionCause) -> None:
    assert compression_cause(CompressionCause.FULL, reason) is cause
    started = evolve(SessionTalk().session, CompressionStarted(at=1, reason=reason))
    assert started.compressing_cause is cause


def test_the_text_of_a_new_compression_decides_nothing() -> None:
    assert compression_cause(CompressionCause.ASKED, "the context overflowed") is CompressionCause.ASKED


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("stopped: /stop by telegram:7", StopCause.ASKED),
        ("stopped: a new message came", StopCause.NEW_MESSAGE),
        ("the session ended: /new by telegram:7", StopCause.SESSION_ENDED),
        ("the session was deleted, and the message with it", StopCause.SESSION_DELETED),
        ("who knows", StopCause.UNKNOWN),
    ],
)
def test_an_old_stop_has_a_cause(message: str, cause: StopCause) -> None:
    assert stop_cause(Failure(kind=FailureKind.CANCELLED, message=message)) is cause
    assert stop_cause(Failure(kind=FailureKind.TIMEOUT, message=message)) is StopCause.UNKNOWN


@pytest.mark.parametrize(
    ("role", "text", "origin"),
    [
        ("user", f"{NOTE_MARK} this turn was interrupted]", MessageOrigin.NOTE),
        ("user", "[Summary of the earlier part of this conversation]", MessageOrigin.NOTE),
        ("user", "[Background process proc_0123456789ab has ended]", MessageOrigin.PROCESS),
        ("user", "hello", MessageOrigin.PERSON),
        ("assistant", f"{NOTE_MARK} a quotation]", MessageOrigin.OTHER),
    ],
)
def test_an_old_carried_message_is_known_by_how_it_begins(role: str, text: str, origin: MessageOrigin) -> None:
    message = EncodedMessage(json.dumps({"role": role, "content": text}).encode())
    assert legacy_origin(message) is origin
