"""A session that grows too long: it ends, a child goes on from a summary, and nobody who waits notices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.domain.cause.cause import EndCause, InterruptionCause
from hermes.domain.cause.end_cause import end_cause, was_compressed
from hermes.domain.events import Notice, SessionMoved, TurnGaveUp
from hermes.domain.ids import TurnId
from hermes.domain.read.explain import explain
from hermes.domain.records import CompressionFailed, ContextCarried
from hermes.domain.session.compression import PAUSE_MAX_S, PAUSE_S
from hermes.domain.session.protocol import (
    Accept,
    AnnounceStop,
    Compress,
    EndSession,
    Recover,
    Resume,
    SetPreference,
    StopTurn,
    Suspend,
)
from hermes.domain.session.request import TooFarBackError
from hermes.domain.session.state import Phase, is_pending
from hermes.domain.source import Place, Source
from hermes.domain.turn.submission import Handling
from hermes.domain.turn.turn_failure import FailureKind
from tests.actors.talk import USAGE, SessionTalk, does, names, needs_leave, of, refusal, said, told

OVERFLOW = FailureKind.CONTEXT_OVERFLOW


def full() -> SessionTalk:
    """A session whose last answer nearly filled the context."""
    talk = SessionTalk()
    talk.say("a")
    talk.answer(full=True)
    return talk


def overflowed() -> SessionTalk:
    """A turn that no longer fits, in the middle of its work."""
    talk = SessionTalk()
    talk.say("a")
    talk.reply(does("c1"))
    talk.returns("c1")
    talk.fail(OVERFLOW)
    return talk


def test_an_answer_that_nearly_fills_the_context_is_given_and_then_room_is_made() -> None:
    talk = SessionTalk()
    talk.say("a")
    assert names(talk.answer(full=True).records) == ["TurnFinished", "CompressionStarted"]
    assert (talk.phase, talk.work()) == (Phase.IDLE, ["summary"])
    assert is_pending(talk.session)
    assert "being compressed" in explain(talk.session, 2.0)


def test_the_child_begins_in_the_step_that_ends_the_parent() -> None:
    talk = full()
    talk.do(SetPreference(name="title", value="trip", reason="asked"))
    child = talk.summarised()
    assert names(talk.log[-2:]) == ["Ended", "Continued"]
    assert (talk.phase, talk.session.reason, talk.session.successor) == (Phase.ENDED, "compression", "s2")
    assert talk.work() == []
    assert names(child.log) == ["SessionStarted", "ContextCarried"]
    assert (child.session.parent, child.session.root, child.session.key) == ("s", "s", talk.session.key)
    assert child.session.preferences.title == "trip"
    assert (child.phase, child.session.turns, child.session.usage) == (Phase.IDLE, 1, USAGE)
    assert child.shown()[-1] == "assistant: yes"
    assert not is_pending(child.session)


def test_a_grandchild_still_works_in_the_folder_of_the_first() -> None:
    child = full().summarised()
    child.say("b")
    child.answer(full=True)
    assert child.summarised("s3").session.root == "s"


def test_messages_that_come_meanwhile_wait_and_go_on_in_the_child() -> None:
    talk = full()
    [accept] = of(Accept, talk.say("b"))
    assert accept == Accept(turn=TurnId("b"), position=0, handling=Handling.QUEUED)
    talk.say("c", busy="interrupt")
    assert talk.work() == ["summary"]
    child = talk.summarised()
    assert (child.phase, child.queue) == (Phase.RESUME_PENDING, ["b", "c"])
    assert is_pending(child.session)
    child.crash()
    assert (child.turn.id, child.queue) == ("b", ["c"])
    assert child.session.interruptions == 0
    assert child.shown()[-1] == "user: b"


def test_a_turn_that_overflows_goes_on_in_the_child_where_it_was() -> None:
    talk = overflowed()
    talk.say("b", busy="steer")
    assert (talk.phase, talk.work()) == (Phase.RUNNING, ["summary"])
    child = talk.summarised()
    [moved] = told(SessionMoved, talk.last)
    assert isinstance(moved, SessionMoved)
    assert (moved.successor, moved.turn) == ("s2", "a")
    assert told(TurnGaveUp, talk.last) == []
    assert (child.turn.id, child.turn.replies, child.turn.usage) == ("a", 1, USAGE)
    assert (child.phase, child.work(), child.queue) == (Phase.RUNNING, ["think"], ["b"])
    child.reply(does("c2"))
    child.returns("c2")
    assert child.turn.merged == ("b",)
    child.answer()
    assert child.session.turns == 1


def test_a_crash_of_the_child_recovers_the_turn_that_moved_into_it() -> None:
    child = overflowed().summarised()
    assert names(child.crash().records) == ["TurnInterrupted", "TurnStarted"]
    assert (child.turn.id, child.turn.attempt, child.work()) == ("a", 2, ["think"])


def test_a_summary_that_fails_after_an_answer_changes_nothing_but_is_told() -> None:
    talk = full()
    talk.say("b")
    taken = talk.summary_fails()
    [notice] = told(Notice, taken)
    assert isinstance(notice, Notice)
    assert "Nothing was lost" in notice.text
    assert "tried again later" in notice.text
    assert names(taken.records) == ["CompressionFailed", "TurnStarted"]
    assert talk.shown() == ["user: a", "assistant: yes", "user: b"]


def test_failed_automatic_compression_waits_longer_each_time_and_never_ends() -> None:
    talk = full()
    for failures in range(1, 12):
        talk.summary_fails()
        pause = min(PAUSE_S * 2 ** (failures - 1), PAUSE_MAX_S)
        talk.now += pause - 1
        talk.say(f"early {failures}")
        talk.answer(full=True)
        assert talk.work() == []
        talk.now += 1
        talk.say(f"later {failures}")
        talk.answer(full=True)
        assert talk.work() == ["summary"]


def test_failed_automatic_compression_is_tried_again_when_the_context_has_grown() -> None:
    def answers(talk: SessionTalk, tokens: int) -> list[str]:
        talk.say(f"{tokens}")
        talk.do(replace(talk.model_says("yes", ()), context_full=True, context_tokens=tokens))
        return talk.work()

    talk = SessionTalk()
    assert answers(talk, 1000) == ["summary"]
    talk.summary_fails()
    assert answers(talk, 1199) == []
    assert answers(talk, 1200) == ["summary"]


def test_fruitless_requests_of_a_person_do_not_end_automatic_compression() -> None:
    talk = SessionTalk()
    talk.say("one")
    talk.answer()
    for _ in range(3):
        talk.do(Compress(reason="asked"))
        taken = talk.summary_fails()
        assert [record.counts for record in taken.records if isinstance(record, CompressionFailed)] == [False]
    assert talk.session.compression_problem == "the model was busy"
    talk.say("two")
    talk.answer(full=True)
    assert talk.work() == ["summary"]


def test_an_overflow_is_always_answered_with_a_try() -> None:
    talk = overflowed()
    for number in range(4):
        assert talk.work() == ["summary"]
        [gave_up] = told(TurnGaveUp, talk.summary_fails())
        assert isinstance(gave_up, TurnGaveUp)
        assert gave_up.failure.kind == OVERFLOW
        assert "/compress" in gave_up.failure.message
        talk.say(f"again {number}")
        talk.fail(OVERFLOW)


def test_a_session_that_a_person_ended_for_compression_can_be_resumed() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.answer()
    talk.do(EndSession(reason="compression"))
    assert end_cause(talk.session) is EndCause.ASKED
    assert names(talk.do(Resume(reason="asked")).records) == ["Resumed"]
    assert (talk.phase, end_cause(talk.session)) == (Phase.IDLE, None)


def test_a_compressed_session_of_an_earlier_store_is_known_by_its_successor() -> None:
    talk = full()
    talk.summarised()
    earlier = replace(talk.session, end_cause=EndCause.UNKNOWN)
    assert was_compressed(earlier)
    assert not was_compressed(replace(earlier, successor=None))


def test_a_report_of_the_model_that_comes_while_room_is_made_changes_nothing() -> None:
    talk = SessionTalk()
    talk.say("a")
    late = talk.model_fails(OVERFLOW)
    talk.do(late)
    assert talk.do(late).records == ()
    assert talk.work() == ["summary"]


def test_compression_can_be_asked_for_when_idle_only_and_once() -> None:
    talk = SessionTalk()
    talk.say("a")
    assert "when it is idle" in refusal(talk.do(Compress(reason="asked")))
    talk.answer()
    assert names(talk.do(Compress(reason="asked", focus="f")).records) == ["CompressionStarted"]
    assert talk.session.compressing_focus == "f"
    assert "being compressed already" in refusal(talk.do(Compress(reason="asked")))


def test_late_summary_is_ignored() -> None:
    talk = full()
    talk.do(StopTurn(reason="user"))
    assert talk.summary_fails().records == ()
    assert talk.phase == Phase.IDLE


# ---------------------------------------------------------------- stops and crashes meanwhile


def test_a_stop_while_room_is_made_calls_that_off_and_counts_against_nobody() -> None:
    talk = full()
    talk.say("b")
    taken = talk.do(StopTurn(reason="user"))
    assert names(taken.records) == ["CompressionFailed", "TurnStarted"]
    assert talk.session.compression_failures == 0
    assert talk.work() == ["think"]


def test_a_stop_of_a_turn_that_overflowed_ends_both() -> None:
    talk = overflowed()
    taken = talk.do(StopTurn(reason="user"))
    assert names(taken.records) == ["CompressionFailed", "TurnFailed"]
    assert (talk.phase, talk.work(), talk.session.compression_failures) == (Phase.IDLE, [], 0)


def test_a_stop_can_name_a_message_that_waits_for_room() -> None:
    talk = full()
    talk.say("b")
    talk.say("c")
    talk.do(StopTurn(reason="left", turn=TurnId("b")))
    assert (talk.work(), talk.queue) == (["summary"], ["c"])
    assert talk.summarised().queue == ["c"]


def test_a_crash_while_room_is_made_calls_it_off_and_what_waits_starts() -> None:
    talk = full()
    talk.say("b")
    taken = talk.crash()
    assert names(taken.records) == ["CompressionFailed", "TurnStarted"]
    assert [record.counts for record in taken.records if isinstance(record, CompressionFailed)] == [False]
    assert (talk.turn.id, talk.session.interruptions) == ("b", 0)

    alone = full()
    alone.crash()
    assert (alone.phase, alone.work()) == (Phase.IDLE, [])
    assert not is_pending(alone.session)


def test_a_crash_while_a_turn_waits_for_room_asks_the_model_again_and_makes_room_again() -> None:
    talk = overflowed()
    assert names(talk.crash().records) == ["CompressionFailed", "TurnInterrupted", "TurnStarted"]
    assert talk.work() == ["think"]
    talk.fail(OVERFLOW)
    assert talk.work() == ["summary"]


def test_a_suspension_while_room_is_made_keeps_the_turn() -> None:
    talk = overflowed()
    talk.do(Suspend(reason="operator"))
    assert talk.work() == []
    assert talk.summary_fails().records == ()
    talk.do(Resume(reason="operator"))
    assert talk.work() == ["think"]


def test_a_stop_announced_while_room_is_made_holds_for_the_child() -> None:
    talk = full()
    talk.say("b")
    assert names(talk.do(AnnounceStop(reason="restart")).records) == ["MarkedResumePending"]
    child = talk.summarised()
    assert child.session.resume_reason == "restart"
    child.crash()
    assert (child.turn.id, child.session.resume_reason) == ("b", "")

    failing = full()
    failing.say("b")
    failing.do(AnnounceStop(reason="restart"))
    failing.summary_fails()
    assert failing.work() == []
    assert is_pending(failing.session)
    failing.crash()
    assert failing.work() == ["think"]


def test_a_compressed_session_is_not_resumed() -> None:
    talk = full()
    talk.summarised()
    assert "goes on as s2" in refusal(talk.do(Resume(reason="asked")))


# ---------------------------------------------------------------- going back


def test_the_last_turns_are_taken_back_and_stay_hidden() -> None:
    talk = SessionTalk()
    for text in ("a", "b", "c"):
        talk.say(text)
        talk.answer(text.upper())
    talk.undo()
    assert talk.shown() == ["user: a", "assistant: A", "user: b", "assistant: B"]
    talk.say("d")
    talk.answer("D")
    talk.undo(2)
    assert talk.shown() == ["user: a", "assistant: A"]
    assert len(talk.session.hidden) == 1
    with pytest.raises(TooFarBackError):
        talk.undo(2)
    talk.undo()
    assert talk.shown() == []


def test_a_retry_says_the_same_once_more_as_a_new_turn() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.answer("no")
    taken = talk.undo(again="again")
    assert names(taken.records) == ["Undone", "MessageReceived", "TurnStarted"]
    [accept] = of(Accept, taken)
    assert isinstance(accept, Accept)
    assert accept.turn == "again"
    assert talk.shown() == ["user: a"]


def test_a_session_at_work_is_not_taken_back() -> None:
    talk = SessionTalk()
    talk.say("a")
    assert "running" in refusal(talk.undo())
    compressing = full()
    assert "being compressed" in refusal(compressing.undo())


def test_a_branch_is_a_copy_and_leaves_the_original_alone() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.answer("A")
    before = talk.session
    branch = talk.branch()
    assert talk.session == before
    assert branch.shown() == talk.shown()
    assert (branch.session.parent, branch.session.preferences.title) == ("s", "other")
    assert (branch.session.usage.prompt_tokens, branch.session.turns) == (0, 0)
    branch.say("b")
    branch.answer("B")
    branch.undo(2)
    assert branch.shown() == []
    assert talk.shown() == ["user: a", "assistant: A"]


def test_a_branch_can_leave_out_the_last_turns_and_be_made_of_a_session_that_has_ended() -> None:
    talk = full()
    talk.say("b")
    talk.summary_fails()
    talk.answer("B")
    talk.do(Compress(reason="asked"))
    talk.summarised()
    assert talk.branch(undo=1).shown() == ["user: a", "assistant: yes"]


def test_a_branch_of_a_session_at_work_has_no_calls_without_outcome() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.reply(needs_leave("c1"))
    branch = talk.branch()
    assert branch.shown() == ["user: a"]


def test_a_child_can_be_taken_back_as_far_as_it_was_told_the_words() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.answer("A")
    talk.do(Compress(reason="asked"))
    child = talk.summarised()
    child.say("b")
    child.answer("B")
    with pytest.raises(TooFarBackError) as error:
        child.undo(2)
    assert error.value.own == 1
    child.undo()
    assert child.shown()[-1] == "assistant: A"


def test_what_was_carried_is_recorded_whole() -> None:
    talk = full()
    talk.say("b")
    child = talk.summarised()
    [carried] = [record for record in child.log if isinstance(record, ContextCarried)]
    assert (carried.origin, [each.turn for each in carried.waiting]) == ("s", ["b"])
    assert carried.active_at == talk.session.active_at


def test_what_waited_is_answered_where_it_was_asked() -> None:
    place = Place(platform="toy", chat="c1")
    talk = full()
    talk.do(said("b", source=Source(platform="toy", user="ann", place=place)))
    child = talk.summarised()
    child.do(Recover(cause=InterruptionCause.CRASH))
    assert child.turn.place == place
