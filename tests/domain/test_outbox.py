"""What follows from a session's records for a chat, in the order it is owed."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from hermes.domain.access.role import Role
from hermes.domain.cause.cause import HoldCause, InterruptionCause
from hermes.domain.ids import TurnId
from hermes.domain.outbox import BURST_S, COMPRESS_REPLY_S, NOTHING_SAID, last_words, outgoing_of
from hermes.domain.outbox_message import OutboxKind, OutboxMessage, TurnEnd
from hermes.domain.session.protocol import (
    AnnounceStop,
    Answer,
    Compress,
    EndSession,
    Event,
    Recover,
    ResetSession,
    SetPreference,
    StopTurn,
    SummaryFailed,
)
from hermes.domain.source import Place, Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.reasoning import Reasoning, fields_of
from hermes.domain.turn.submission import Busy
from hermes.domain.turn.tool_call import Call
from hermes.domain.turn.turn_failure import FailureKind
from tests.actors.talk import API, SessionTalk, asks, does, needs_leave, said

PLACE = Place(platform="toy", chat="c1", message="7")
ANN = Source(platform="toy", user="ann", place=PLACE, role=Role.ADMIN)
WAKE = Source(platform="process", automatic=True)


class Chat(SessionTalk):
    """A talk on a chat platform, and what each step of it owes."""

    def owes(self, event: Event) -> list[OutboxMessage]:
        before = self.session
        return outgoing_of(before, self.do(event).records)

    def begun(self, text: str = "a") -> Chat:
        self.do(said(text, source=ANN))
        return self


def test_a_turn_owes_where_it_is_shown_and_then_its_answer() -> None:
    chat = Chat()
    [shown] = chat.owes(said("a", source=ANN))
    assert (shown.id, shown.final, shown.place) == ("reply:a", False, PLACE)
    [reply] = chat.owes(chat.model_says("hello", ()))
    assert (reply.id, reply.final, reply.kind, reply.text) == ("reply:a", True, OutboxKind.REPLY, "hello")
    assert reply.place == PLACE


def test_reasoning_is_shown_with_an_answer_only_on_request() -> None:
    thought = Reasoning(text="one\ntwo")
    for shown, text in ((False, "hello"), (True, "> one\n> two\n\nhello")):
        chat = Chat().begun()
        chat.do(SetPreference(name="show_reasoning", value=shown, reason="/reasoning"))
        answer = chat.model_says("hello", ())
        [reply] = chat.owes(replace(answer, message=with_reasoning("hello", thought)))
        assert reply.text == text


def with_reasoning(text: str, reasoning: Reasoning) -> EncodedMessage:
    fields = {"role": "assistant", "content": text, **fields_of(reasoning)}
    return EncodedMessage(json.dumps(fields, separators=(",", ":")).encode())


def test_waiting_client_gets_no_outbox_message() -> None:
    chat = Chat()
    assert chat.owes(said("a")) == []
    assert chat.owes(chat.model_says("hello", ())) == []


def test_an_empty_answer_is_said_to_be_empty() -> None:
    chat = Chat().begun()
    [reply] = chat.owes(chat.model_says("  ", ()))
    assert reply.text == NOTHING_SAID


def test_the_next_message_is_shown_when_its_turn_begins() -> None:
    chat = Chat().begun("a")
    chat.do(said("b", source=ANN))
    outgoing = chat.owes(chat.model_says("first", ()))
    assert [(each.id, each.final) for each in outgoing] == [("reply:a", True), ("reply:b", False)]


@pytest.mark.parametrize("kind", [FailureKind.TIMEOUT, FailureKind.AUTH])
def test_failure_replaces_the_answer(kind: FailureKind) -> None:
    chat = Chat().begun()
    [reply] = chat.owes(chat.model_fails(kind))
    assert (reply.id, reply.end) == ("reply:a", TurnEnd.FAILED)
    assert reply.text == "That did not work: too slow. Your message is kept: /retry tries again."


def test_a_stop_is_told_plainly() -> None:
    chat = Chat().begun()
    [reply] = chat.owes(StopTurn(reason="/stop", who="toy:ann"))
    assert (reply.text, reply.end) == ("Stopped: /stop.", TurnEnd.STOPPED)


@pytest.mark.parametrize("wish", [StopTurn(reason="/stop", by=PLACE), EndSession(reason="/new", by=PLACE)])
def test_a_stop_that_was_wished_in_the_same_chat_has_nothing_to_say_there(wish: StopTurn | EndSession) -> None:
    chat = Chat().begun()
    [reply] = chat.owes(wish)
    assert (reply.text, reply.end) == ("", TurnEnd.STOPPED)
    elsewhere = Chat().begun()
    [reply] = elsewhere.owes(replace(wish, by=replace(PLACE, chat="c2")))
    assert reply.text != ""


def test_a_message_that_its_sender_takes_back_while_it_waits_is_dropped_without_a_word() -> None:
    chat = Chat().begun("a")
    chat.do(said("b", source=ANN))
    [dropped] = chat.owes(StopTurn(reason="the message was deleted", turn=TurnId("b"), by=PLACE))
    assert (dropped.id, dropped.text, dropped.end) == ("reply:b", "", TurnEnd.STOPPED)


def test_the_first_of_the_messages_that_wait_gets_a_sign_and_nothing_is_owed_by_it() -> None:
    chat = Chat().begun("a")
    [sign] = chat.owes(said("b", source=ANN))
    assert (sign.kind, sign.place, sign.final) == (OutboxKind.SIGN, PLACE, False)
    assert chat.owes(said("c", source=ANN)) == []  # in one breath with it
    assert chat.owes(said("d", source=ANN, busy=Busy.STEER)) == []
    chat.now += BURST_S
    [sign] = chat.owes(said("e", source=ANN))
    assert sign.turn == "e"


def test_a_message_that_interrupts_the_one_before_says_so_by_itself() -> None:
    chat = Chat().begun()
    stopped, begun = chat.owes(said("b", source=ANN, busy=Busy.INTERRUPT))
    assert (stopped.text, stopped.end, begun.final) == ("", TurnEnd.STOPPED, False)


@pytest.mark.parametrize(
    ("text", "end", "shown", "words"),
    [
        ("", TurnEnd.STOPPED, "", "(stopped)"),
        ("Stopped: maintenance.", TurnEnd.STOPPED, "", "Stopped: maintenance."),
        ("", TurnEnd.STOPPED, "I begin", "I begin\n\n(stopped)"),
        ("", TurnEnd.STOPPED, "```\ncode", "```\ncode\n```\n\n(stopped)"),
        ("No.", TurnEnd.FAILED, "I begin", "I begin\n\n(This is as far as it came.)\nNo."),
        ("No.", TurnEnd.FAILED, "", "No."),
    ],
)
def test_the_last_words_of_a_turn_without_an_answer_keep_what_was_shown(
    text: str, end: TurnEnd, shown: str, words: str
) -> None:
    outgoing = OutboxMessage(id="reply:a", kind=OutboxKind.REPLY, place=PLACE, text=text, at=0.0, end=end)
    assert last_words(outgoing, shown) == words


def test_a_question_and_an_approval_are_owed_with_their_choices() -> None:
    chat = Chat().begun()
    [question] = chat.owes(chat.model_says("", (asks("q1", "red", "blue"),)))
    assert (question.kind, question.id) == (OutboxKind.QUESTION, "question:a:q1")
    assert (question.choices, question.call) == (("red", "blue"), "q1")
    other = Chat().begun()
    [approval] = other.owes(other.model_says("", (needs_leave("c1"),)))
    assert approval.choices == ("once", "session", "always", "deny")


@pytest.mark.parametrize(
    ("event", "settled"),
    [
        (Answer(answer="once", source=ANN), "once"),
        (Answer(answer="deny", source=API), "deny"),
        (said("yes", source=ANN), "once"),
        (StopTurn(reason="/stop"), "not answered"),
        (EndSession(reason="/new"), "not answered"),
    ],
)
def test_however_a_question_is_settled_it_says_so_in_its_own_message(event: Event, settled: str) -> None:
    chat = Chat().begun()
    [question] = chat.owes(chat.model_says("", (needs_leave("c1"), does("c2"))))
    [told, *_] = chat.owes(event)
    assert (told.amends, told.choices) == (question.id, ())
    assert told.text == f"{question.text}\n\n→ {settled}"


def test_a_question_without_choices_stays_as_it_was_said() -> None:
    chat = Chat().begun()
    chat.owes(chat.model_says("", (asks("q1"),)))
    assert chat.owes(said("the red one", source=ANN)) == []


def test_an_announced_stop_is_told_where_a_turn_runs_and_promises_no_more_than_to_try() -> None:
    chat = Chat().begun()
    [banner] = chat.owes(AnnounceStop(reason="restart: new version"))
    assert banner.kind is OutboxKind.NOTICE
    assert banner.text == "Hermes is stopping (restart: new version). It will try to go on with this when it is back."
    idle = Chat().begun()
    idle.answer()
    assert idle.owes(AnnounceStop(reason="restart")) == []


def test_a_turn_that_goes_on_by_itself_is_shown_again_and_a_held_one_asks_for_a_word() -> None:
    chat = Chat().begun()
    [shown] = chat.owes(Recover(cause=InterruptionCause.CRASH))
    assert (shown.id, shown.final) == ("reply:a", False)
    other = Chat().begun()
    [asked] = other.owes(Recover(cause=InterruptionCause.CRASH, hold=HoldCause.CONFIGURED))
    assert asked.text == "I was interrupted (the daemon ended unexpectedly). Write anything, and I go on where I was."


def test_third_interruption_is_reported_with_the_resume_command() -> None:
    chat = Chat().begun()
    chat.crash()
    chat.crash()
    outgoing = chat.owes(Recover(cause=InterruptionCause.CRASH))
    [told] = [each for each in outgoing if each.kind is OutboxKind.NOTICE]
    assert "suspended" in told.text
    assert "/resume s" in told.text


def test_reset_notice_goes_where_the_person_wrote_last() -> None:
    chat = Chat().begun()
    chat.answer()
    reset = ResetSession(reason="idle", active_at=chat.session.active_at, notice="It was reset.")
    [told] = chat.owes(reset)
    assert (told.text, told.place) == ("It was reset.", PLACE)


def test_what_wakes_a_conversation_by_itself_is_answered_where_its_person_is() -> None:
    chat = Chat().begun()
    chat.answer()
    [shown] = chat.owes(said("the build ended", source=WAKE))
    assert shown.place == PLACE
    chat.answer()
    assert chat.owes(said("from a terminal")) == []


def test_a_tool_call_alone_owes_nothing() -> None:
    chat = Chat().begun()
    assert chat.owes(chat.model_says("", (does("c1"),))) == []


def test_a_message_that_waits_through_a_compression_is_answered_where_it_was_written() -> None:
    chat = Chat().begun("a")
    chat.do(said("b", source=ANN))
    chat.answer(full=True)
    child = chat.summarised()
    [waiting] = child.session.queue
    assert waiting.place == PLACE


@pytest.mark.parametrize("tool", ["send_file", "image_generate"])
def test_a_file_that_the_agent_sends_is_owed_as_soon_as_it_is_put_aside(tool: str) -> None:
    chat = Chat().begun()
    chat.do(chat.model_says("", (Call(id="c1", name=tool),)))
    result = json.dumps({"status": "on its way", "copy": "/media/out/1/a.txt"})
    [outgoing] = chat.owes(chat.tool_returns("c1", result))
    assert (outgoing.files, outgoing.text, outgoing.place, outgoing.final) == (
        ("/media/out/1/a.txt",),
        "",
        PLACE,
        True,
    )


# ---------------------------------------------------------------- a compression that failed

FAILS = SummaryFailed(reason="the model was busy")


def full_chat() -> Chat:
    chat = Chat().begun()
    chat.do(replace(chat.model_says("yes", ()), context_full=True))
    return chat


def asked_chat() -> Chat:
    chat = Chat().begun()
    chat.answer()
    chat.do(Compress(reason="asked"))
    return chat


def test_chat_is_told_that_an_automatic_compression_failed() -> None:
    chat = full_chat()
    [notice] = chat.owes(FAILS)
    assert (notice.kind, notice.place, notice.final) == (OutboxKind.NOTICE, PLACE, True)
    assert "the model was busy" in notice.text


def test_each_failed_compression_is_a_message_of_its_own() -> None:
    chat = full_chat()
    [first] = chat.owes(FAILS)
    chat.now += 1e6
    chat.do(said("b", source=ANN))
    chat.do(replace(chat.model_says("yes", ()), context_full=True))
    [second] = chat.owes(FAILS)
    assert first.id != second.id


def test_chat_is_told_of_a_requested_compression_that_failed_after_the_reply_to_the_command() -> None:
    quick = asked_chat()
    assert quick.owes(FAILS) == []  # the reply to /compress says it
    slow = asked_chat()
    slow.now += COMPRESS_REPLY_S
    [notice] = slow.owes(FAILS)
    assert notice.place == PLACE


def test_chat_is_told_of_a_requested_compression_that_a_restart_interrupted() -> None:
    [notice] = asked_chat().owes(Recover(cause=InterruptionCause.RESTART))
    assert "/compress" in notice.text
    assert full_chat().owes(Recover(cause=InterruptionCause.RESTART)) == []


def test_compression_that_was_stopped_owes_no_notice() -> None:
    assert full_chat().owes(StopTurn(reason="/stop")) == []


def test_overflow_that_could_not_be_compressed_is_told_once() -> None:
    chat = Chat().begun()
    chat.fail(FailureKind.CONTEXT_OVERFLOW)
    [reply] = chat.owes(FAILS)
    assert (reply.kind, reply.end) == (OutboxKind.REPLY, TurnEnd.FAILED)
