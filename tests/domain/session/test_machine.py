"""Messages, turns and the lifecycle of a session; calls and compression have tests of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from hermes.domain.cause.cause import HoldCause, InterruptionCause
from hermes.domain.events import TurnAnswered, TurnGaveUp
from hermes.domain.ids import Seq, SessionId, SessionKey, TurnId
from hermes.domain.read.explain import explain
from hermes.domain.records import BadRecord, LogEntry, Resumed, TurnInterrupted
from hermes.domain.session.builder import encode
from hermes.domain.session.fold.state_fold import evolve, replay
from hermes.domain.session.machine import HANDLERS, step
from hermes.domain.session.protocol import (
    Accept,
    AnnounceStop,
    EndSession,
    Event,
    Recover,
    Refuse,
    Reroute,
    Resume,
    SetPreference,
    StopTurn,
    Suspend,
    TurnLimits,
)
from hermes.domain.session.recovery import SUSPEND_AFTER
from hermes.domain.session.state import Phase, is_pending
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Handling, Submission
from hermes.domain.turn.tool_call import Call
from tests.actors.talk import API, FRESH, SessionTalk, does, names, needs_leave, of, reads, refusal, said, told


def test_a_message_to_an_idle_session_is_recorded_accepted_and_started_in_one_step() -> None:
    taken = step(FRESH, said("a"), 5.0)
    assert names(taken.records) == ["MessageReceived", "TurnStarted"]
    assert taken.session.phase == Phase.RUNNING
    assert taken.session.active_at == 5.0
    assert of(Accept, taken) == [Accept(turn=TurnId("a"), position=0, handling=Handling.STARTED)]


def test_the_model_is_asked_as_soon_as_a_turn_has_started() -> None:
    talk = SessionTalk()
    assert talk.work() == []
    talk.say("a")
    assert talk.work() == ["think"]
    talk.answer()
    assert talk.work() == []


def test_a_message_during_a_turn_waits_and_starts_when_the_turn_has_ended() -> None:
    talk = SessionTalk()
    talk.say("a")
    queued = talk.say("b")
    assert names(queued.records) == ["MessageReceived"]
    assert of(Accept, queued) == [Accept(turn=TurnId("b"), position=1, handling=Handling.QUEUED)]

    done = talk.answer()
    assert names(done.records) == ["TurnFinished", "TurnStarted"]
    assert talk.turn.id == "b"
    assert talk.shown() == ["user: a", "assistant: yes", "user: b"]


def test_a_full_queue_refuses_with_a_reason_and_stores_nothing() -> None:
    talk = SessionTalk(limits=TurnLimits(max_queue=2))
    for text in ("a", "b", "c"):
        talk.say(text)
    before = talk.session
    assert "nothing was stored" in refusal(talk.say("d"))
    assert talk.session == before
    assert "nothing was stored" in refusal(talk.say("d", busy="interrupt"))


def test_an_inbound_id_is_remembered_with_the_message_it_came_with() -> None:
    seen = step(FRESH, said("a", inbound="api:1"), 7.0).seen
    assert seen is not None
    assert (seen.key, seen.session, seen.turn, seen.fingerprint, seen.at) == ("api:1", "s", "a", b"f", 7.0)


def test_a_late_report_of_a_stopped_or_restarted_run_changes_nothing() -> None:
    talk = SessionTalk()
    talk.say("a")
    late = talk.model_says("yes", ())
    stopped = step(talk.session, StopTurn(reason="enough"), 1.0).session
    assert step(stopped, late, 1.0).records == ()

    talk.crash()
    assert talk.turn.attempt == 2
    assert talk.do(late).records == ()
    assert talk.do(replace(late, attempt=2, replies=1)).records == ()


def test_a_failed_turn_keeps_its_reason_and_the_next_message_starts() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.say("b")
    assert names(talk.fail().records) == ["TurnFailed", "TurnStarted"]
    assert talk.session.last_failure is not None
    assert "too slow" in explain(talk.session, 2.0)


# ---------------------------------------------------------------- stops


def test_a_stop_ends_the_running_turn_only() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.say("b")
    [gave_up] = told(TurnGaveUp, talk.do(StopTurn(reason="user")))
    assert isinstance(gave_up, TurnGaveUp)
    assert (gave_up.turn, gave_up.failure.kind) == ("a", "cancelled")
    assert talk.turn.id == "b"
    assert talk.work() == ["think"]


def test_a_stop_can_name_a_waiting_turn() -> None:
    talk = SessionTalk()
    for text in ("a", "b", "c"):
        talk.say(text)
    talk.do(StopTurn(reason="left", turn=TurnId("b")))
    assert talk.turn.id == "a"
    assert talk.queue == ["c"]


def test_a_stop_of_something_that_is_over_changes_nothing() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.answer()
    assert talk.do(StopTurn(reason="late")).records == ()
    assert talk.do(StopTurn(reason="late", turn=TurnId("a"))).records == ()


def test_stopping_a_turn_of_a_suspended_session_wakes_nobody_and_keeps_its_reason() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.say("b")
    talk.do(Suspend(reason="operator"))
    talk.do(StopTurn(reason="left", turn=TurnId("a")))
    assert (talk.phase, talk.session.reason, talk.queue) == (Phase.SUSPENDED, "operator", ["b"])
    talk.do(Resume(reason="operator"))
    assert talk.turn.id == "b"


# ---------------------------------------------------------------- busy modes


def test_a_message_that_interrupts_ends_the_turn_and_is_next() -> None:
    talk = SessionTalk()
    talk.say("a")
    interrupting = talk.say("b", busy="interrupt")
    assert names(interrupting.records) == ["MessageReceived", "TurnFailed", "TurnStarted"]
    assert of(Accept, interrupting) == [Accept(turn=TurnId("b"), position=0, handling=Handling.INTERRUPTING)]
    assert talk.turn.id == "b"


def test_a_message_that_interrupts_does_not_overtake_what_waits() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.say("b")
    [accept] = of(Accept, talk.say("c", busy="interrupt"))
    assert accept == Accept(turn=TurnId("c"), position=1, handling=Handling.INTERRUPTING)
    assert (talk.turn.id, talk.queue) == ("b", ["c"])


@pytest.mark.parametrize(("wish", "preferred", "configured"), [("steer", "", "queue"), ("", "steer", "queue")])
def test_a_message_steers_if_it_or_the_conversation_says_so(wish: str, preferred: str, configured: str) -> None:
    talk = SessionTalk(limits=TurnLimits(busy=configured))  # type: ignore[arg-type]
    talk.do(SetPreference(name="busy", value=preferred, reason="asked"))
    talk.say("a")
    talk.reply(does("c1"))
    [accept] = of(Accept, talk.say("and b", busy=wish))
    assert isinstance(accept, Accept)
    assert accept.handling == "steering"
    talk.returns("c1")
    assert talk.shown() == ["user: a", "assistant calls c1", "c1: done", "user: and b"]
    assert talk.queue == []
    assert talk.turn.merged == ("and b",)
    answered = told(TurnAnswered, talk.answer())
    assert [event.turn for event in answered if isinstance(event, TurnAnswered)] == ["a", "and b"]


def test_steering_that_comes_too_late_is_a_turn_of_its_own() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.say("b", busy="steer")
    talk.answer()
    assert talk.turn.id == "b"
    assert talk.shown() == ["user: a", "assistant: yes", "user: b"]


# ---------------------------------------------------------------- an announced stop


def test_an_announced_stop_marks_work_in_flight_once_and_idle_sessions_not_at_all() -> None:
    assert step(FRESH, AnnounceStop(reason="restart"), 1.0).records == ()
    talk = SessionTalk()
    talk.say("a")
    assert names(talk.do(AnnounceStop(reason="restart")).records) == ["MarkedResumePending"]
    assert talk.do(AnnounceStop(reason="restart")).records == ()


def test_after_an_announced_stop_no_new_turn_starts_and_what_waits_starts_after_the_restart() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.say("b")
    talk.do(AnnounceStop(reason="restart"))
    assert names(talk.answer().records) == ["TurnFinished"]
    assert talk.phase == Phase.RESUME_PENDING
    assert is_pending(talk.session)

    assert names(talk.crash().records) == ["TurnStarted"]
    assert talk.turn.id == "b"
    assert talk.session.interruptions == 0


def test_a_turn_that_finishes_in_time_clears_the_mark() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.do(AnnounceStop(reason="restart"))
    talk.answer()
    assert talk.phase == Phase.IDLE
    assert talk.session.resume_reason == ""
    assert not is_pending(talk.session)


def test_a_crash_and_an_announced_stop_recover_to_the_same_turn_with_their_own_reason() -> None:
    crashed, stopped = SessionTalk(), SessionTalk()
    for talk in (crashed, stopped):
        talk.say("a")
    stopped.do(AnnounceStop(reason="shutdown"))
    for talk, why in ((crashed, InterruptionCause.CRASH), (stopped, InterruptionCause.SHUTDOWN)):
        taken = talk.crash()
        assert names(taken.records) == ["TurnInterrupted", "TurnStarted"]
        assert [r.cause for r in taken.records if isinstance(r, TurnInterrupted)] == [why]
        assert talk.phase == Phase.RUNNING
        assert talk.work() == ["think"]


# ---------------------------------------------------------------- suspension and resumption


def test_three_interruptions_without_a_finished_turn_suspend_and_a_finished_turn_forgives() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.crash()
    talk.crash()
    forgiven = SessionTalk(talk.session, talk.log)
    forgiven.answer()
    assert forgiven.session.interruptions == 0

    talk.crash()
    assert talk.phase == Phase.SUSPENDED
    assert talk.work() == []
    assert not is_pending(talk.session)
    assert f"interrupted {SUSPEND_AFTER} times" in explain(talk.session, 2.0)
    assert of(Reroute, talk.say("b"))


def test_a_resumed_session_takes_up_the_turn_it_was_suspended_with() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.say("b")
    talk.do(Suspend(reason="operator"))
    assert talk.phase == Phase.SUSPENDED
    assert names(talk.do(Resume(reason="operator")).records) == ["Resumed", "TurnStarted"]
    assert talk.turn.id == "a"
    assert talk.queue == ["b"]


def test_a_suspended_session_keeps_a_call_that_waits_and_asks_again_when_it_is_resumed() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.reply(needs_leave("c1"))
    talk.do(Suspend(reason="operator"))
    assert "does not wait" in refusal(talk.tell("once"))
    assert talk.session.interruptions == 0
    talk.do(Resume(reason="operator"))
    assert talk.phase == Phase.WAITING
    talk.tell("once")
    assert talk.work() == ["c1"]


def test_a_turn_that_waits_for_a_person_over_a_restart_has_the_announced_reason() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.reply(needs_leave("c1"))
    talk.do(AnnounceStop(reason="restart: new version"))
    [resumed] = talk.do(Recover(cause=InterruptionCause.CRASH)).records
    assert isinstance(resumed, Resumed)
    assert resumed.reason == "restart: new version"


def test_a_stopped_turn_is_not_said_to_have_failed() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.do(StopTurn(reason="stopped by a person"))
    assert talk.session.reason == "the last turn was stopped"


def test_without_a_daemon_an_open_turn_has_one_promise() -> None:
    talk = SessionTalk()
    talk.say("a")
    said = explain(talk.session, 100.0, alive=False)
    assert "no daemon runs; it goes on when one does" in said
    assert "next message" not in said


def test_a_call_in_flight_at_a_suspension_is_not_run_again_and_what_came_after_it_not_at_all() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.reply(does("c1"), does("c2"))
    talk.do(Suspend(reason="operator"))
    assert talk.work() == []
    talk.do(Resume(reason="operator"))
    assert talk.work() == ["think"]
    assert [line.partition(".")[0] for line in talk.shown()[:4]] == [
        "user: a",
        "assistant calls c1 c2",
        "c1: No recorded outcome: the session was suspended while this call ran",
        "c2: Not run: the session was suspended before this call started",
    ]


def test_an_outcome_that_comes_just_after_a_suspension_is_kept_and_starts_nothing() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.reply(does("c1"), does("c2"))
    late = talk.tool_returns("c1")
    talk.do(Suspend(reason="operator"))
    assert names(talk.do(late).records) == ["ToolFinished"]
    assert talk.work() == []
    talk.do(Resume(reason="operator"))
    assert talk.work() == ["c2"]
    assert talk.shown() == ["user: a", "assistant calls c1 c2", "c1: done"]


def test_steering_person_learns_of_a_suspension() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.reply(reads("c1"))
    talk.say("b", busy="steer")
    talk.returns("c1")
    gave_up = told(TurnGaveUp, talk.do(Suspend(reason="operator")))
    assert [event.turn for event in gave_up if isinstance(event, TurnGaveUp)] == ["a", "b"]


def test_a_key_can_be_given_to_a_session_at_work_without_disturbing_it() -> None:
    talk = SessionTalk()
    talk.say("a")
    taken = talk.do(Resume(reason="asked", key=SessionKey("k")))
    assert taken.bind == "k"
    assert taken.records
    assert talk.phase == Phase.RUNNING
    assert talk.work() == ["think"]


def test_an_ended_session_can_be_opened_again() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.answer()
    talk.do(EndSession(reason="done", successor=SessionId("next")))
    assert str(talk.session.successor) == "next"
    taken = talk.do(Resume(reason="asked", key=SessionKey("k")))
    assert (taken.bind, talk.phase, talk.session.successor) == ("k", Phase.IDLE, None)


def test_ending_a_session_tells_everyone_who_waits_and_is_final() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.say("b")
    assert names(talk.do(EndSession(reason="done")).records) == ["TurnFailed", "TurnFailed", "Ended"]
    assert talk.work() == []
    assert of(Reroute, talk.say("c"))
    assert of(Refuse, talk.do(EndSession(reason="again")))


def test_ending_a_session_closes_its_calls() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.reply(does("c1"), does("c2"))
    taken = talk.do(EndSession(reason="done"))
    assert names(taken.records) == ["ToolFinished", "ToolFinished", "TurnFailed", "Ended"]


def test_a_command_in_the_wrong_phase_is_refused_with_the_phase() -> None:
    assert "idle" in refusal(step(FRESH, Resume(reason="x"), 1.0))


def test_a_preference_that_does_not_exist_is_refused() -> None:
    talk = SessionTalk()
    assert "there is no preference 'colour'" in refusal(
        talk.do(SetPreference(name="colour", value="red", reason="asked"))
    )
    assert names(talk.do(SetPreference(name="model", value="m2", reason="asked")).records) == ["Preferred"]
    assert talk.do(SetPreference(name="model", value="m2", reason="asked")).records == ()


# ---------------------------------------------------------------- the log


def test_a_log_whose_first_record_is_damaged_still_gives_a_session() -> None:
    entries = [
        LogEntry(seq=Seq(0), record=BadRecord(problem="flipped")),
        *(LogEntry(seq=Seq(1 + i), record=r) for i, r in enumerate(step(FRESH, said("a"), 1.0).records)),
    ]
    session = replay(SessionId("s"), entries)
    assert session is not None
    assert session.phase == Phase.RUNNING
    assert session.next_seq == 3


def test_a_message_is_encoded_as_plain_utf_8() -> None:
    assert encode(role="tool", content="é\n") == '{"role":"tool","content":"é\\n"}'.encode()


def test_evolve_counts_every_record() -> None:
    session = FRESH
    for record in step(FRESH, said("a"), 1.0).records:
        before = session.next_seq
        session = evolve(session, record)
        assert session.next_seq == before + 1


def test_history_that_came_along_is_part_of_the_turn() -> None:
    talk = SessionTalk()
    history = tuple(EncodedMessage(m) for m in (b'{"role":"user","content":"x"}', b'{"role":"user","content":"y"}'))
    talk.do(Submission(turn=TurnId("a"), messages=history, source=API))
    assert talk.shown() == ["user: x", "user: y"]


def test_a_recovered_session_with_nothing_open_stays_as_it_is() -> None:
    assert step(FRESH, Recover(cause=InterruptionCause.CRASH), 1.0).records == ()


# ---------------------------------------------------------------- turns that are held until the person writes


def held(*calls: Call) -> SessionTalk:
    talk = SessionTalk()
    talk.say("a")
    if calls:
        talk.reply(*calls)
    talk.do(Recover(cause=InterruptionCause.CRASH, hold=HoldCause.CONFIGURED))
    return talk


def test_a_held_turn_does_not_go_on_by_itself_and_is_interrupted_once_however_often_the_daemon_starts() -> None:
    talk = held()
    for _ in range(5):
        assert not talk.do(Recover(cause=InterruptionCause.CRASH, hold=HoldCause.CONFIGURED)).records
    assert (talk.session.phase, talk.session.interruptions, talk.work()) == (Phase.RESUME_PENDING, 1, [])


def test_a_held_turn_goes_on_with_the_next_message_which_is_answered_first() -> None:
    talk = held(does("c1"))
    taken = talk.say("are you there?", turn="t2")
    assert names(taken.records) == ["MessageReceived", "ToolFinished", "TurnStarted", "Merged"]
    assert talk.work() == ["think"]
    note, said = talk.shown()[-2:]
    assert said == "user: are you there?"
    assert "Hermes crashed" in note
    assert "write (write c1)" in note
    assert "Answer that message first." in note
    assert talk.turn.merged == ("t2",)


def test_a_held_turn_does_not_go_on_because_a_process_ended() -> None:
    talk = held()
    notice = replace(said("process 1 has ended", turn="t2"), source=replace(API, automatic=True))
    noticed = talk.do(notice)
    assert names(noticed.records) == ["MessageReceived"]
    assert (talk.session.phase, talk.work()) == (Phase.RESUME_PENDING, [])
    talk.say("are you there?", turn="t3")
    assert talk.work() == ["think"]
    assert [turn.id for turn in talk.session.queue] == ["t2", "t3"]


def test_what_waits_behind_a_held_turn_starts_when_that_is_stopped_whatever_stops_were_announced_before() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.say("b")
    for _ in range(2):
        talk.do(AnnounceStop(reason="shutdown"))
        talk.do(Recover(cause=InterruptionCause.CRASH, hold=HoldCause.CONFIGURED))
        assert talk.phase == Phase.RESUME_PENDING
        assert talk.session.interruptions == 1
    talk.do(StopTurn(reason="somebody asked for it"))
    assert talk.turn.id == "b"
    assert talk.work() == ["think"]


def test_an_operator_can_have_a_held_turn_go_on() -> None:
    talk = held()
    talk.do(Resume(reason="operator"))
    assert talk.work() == ["think"]


def test_a_held_turn_goes_on_by_itself_once_a_daemon_starts_that_holds_nothing() -> None:
    talk = held()
    taken = talk.do(Recover(cause=InterruptionCause.CRASH))
    assert names(taken.records) == ["TurnStarted"]
    assert talk.session.interruptions == 1


def test_what_waited_before_a_held_turn_was_written_to_goes_before_what_is_said_now() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.say("b")
    talk.do(Recover(cause=InterruptionCause.CRASH, hold=HoldCause.CONFIGURED))
    talk.say("c")
    assert talk.work() == ["think"]
    assert [turn.id for turn in talk.session.queue] == ["b", "c"]


def test_opening_is_taken_with_the_first_message_only() -> None:
    talk = SessionTalk()
    system = EncodedMessage(b'{"role":"system","content":"Be brief."}')
    [taken] = of(Accept, talk.do(replace(said("a"), opening=(system,))))
    assert taken == Accept(turn=TurnId("a"), position=0, handling=Handling.STARTED, opened=True)
    talk.answer()
    assert talk.shown() == ["system: Be brief.", "user: a", "assistant: yes"]
    [taken] = of(Accept, talk.do(replace(said("b"), opening=(system,))))
    assert taken == Accept(turn=TurnId("b"), position=0, handling=Handling.STARTED, opened=False)
    assert talk.shown()[-1] == "user: b"


def test_every_event_has_a_handler() -> None:
    assert set(HANDLERS) == set(get_args(Event))
