from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.actors.session_machine import SUSPEND_AFTER, encode_answer, step
from hermes.actors.session_protocol import (
    Accept,
    AnnounceStop,
    BeginTurn,
    CancelTurn,
    Deliver,
    Effect,
    End,
    Event,
    Recover,
    Refuse,
    Reroute,
    Resume,
    Step,
    StopTurn,
    Suspend,
    TurnErrored,
    TurnSucceeded,
)
from hermes.actors.session_state import begin, evolve, is_pending, replay
from hermes.actors.transcript import Transcript, stored_messages
from hermes.actors.why import explain
from hermes.records import BadRecord, LogEntry, Record, SessionStarted, TurnFailed, TurnFinished, TurnInterrupted
from hermes.types import (
    EncodedMessage,
    Failure,
    FailureKind,
    InboundKey,
    Phase,
    Seq,
    Session,
    SessionId,
    SessionKey,
    Source,
    TurnId,
    Usage,
)

API = Source(platform="api")
STARTED = SessionStarted(at=0.0, key=SessionKey("agent:main:api:dm:s"), source=API, reason="first message")
FRESH = begin(SessionId("s"), STARTED)


def said(text: str) -> Deliver:
    message = EncodedMessage(f'{{"role":"user","content":"{text}"}}'.encode())
    return Deliver(turn=TurnId(text), messages=(message,), source=API)


def answer(session: Session, text: str = "yes") -> TurnSucceeded:
    assert session.turn is not None
    return TurnSucceeded(
        turn=session.turn.id,
        attempt=session.turn.attempt,
        text=text,
        model="m",
        finish_reason="stop",
        usage=Usage(prompt_tokens=3, completion_tokens=2),
    )


def failure(session: Session) -> TurnErrored:
    assert session.turn is not None
    why = Failure(kind=FailureKind.TIMEOUT, message="too slow")
    return TurnErrored(turn=session.turn.id, attempt=session.turn.attempt, failure=why)


def after(session: Session, *events: Event) -> Session:
    for event in events:
        session = step(session, event, 1.0).session
    return session


def kinds(result: Step) -> list[str]:
    return [type(record).__name__ for record in result.records]


def of(kind: type[Effect], result: Step) -> list[Effect]:
    return [effect for effect in result.effects if isinstance(effect, kind)]


def test_a_message_to_an_idle_session_is_recorded_accepted_and_started_in_one_step() -> None:
    result = step(FRESH, said("a"), 5.0)

    assert kinds(result) == ["MessageReceived", "TurnStarted"]
    assert result.session.phase == Phase.RUNNING
    assert result.session.active_at == 5.0
    assert of(Accept, result) == [Accept(turn=TurnId("a"), position=0)]
    assert len(of(BeginTurn, result)) == 1


def test_a_message_during_a_turn_waits_and_starts_when_the_turn_has_ended() -> None:
    running = after(FRESH, said("a"))
    queued = step(running, said("b"), 2.0)
    assert kinds(queued) == ["MessageReceived"]
    assert of(Accept, queued) == [Accept(turn=TurnId("b"), position=1)]
    assert not of(BeginTurn, queued)

    done = step(queued.session, answer(queued.session), 3.0)
    assert kinds(done) == ["TurnFinished", "TurnStarted"]
    assert done.session.turn is not None
    assert done.session.turn.id == "b"


def test_a_full_queue_refuses_with_a_reason_and_stores_nothing() -> None:
    full = after(FRESH, said("a"), said("b"), said("c"))
    result = step(full, said("d"), 1.0, max_queue=2)

    assert result.records == ()
    assert result.session == full
    [refusal] = of(Refuse, result)
    assert isinstance(refusal, Refuse)
    assert "nothing was stored" in str(refusal.error)


def test_an_inbound_id_is_remembered_with_the_message_it_came_with() -> None:
    event = replace(said("a"), inbound=InboundKey("api:1"), fingerprint=b"f")
    seen = step(FRESH, event, 7.0).seen
    assert seen is not None
    assert (seen.key, seen.session, seen.turn, seen.fingerprint, seen.at) == ("api:1", "s", "a", b"f", 7.0)


def test_a_late_report_of_a_stopped_or_restarted_run_changes_nothing() -> None:
    running = after(FRESH, said("a"))
    late = answer(running)
    stopped = after(running, StopTurn(reason="enough"))
    assert step(stopped, late, 1.0).records == ()

    recovered = after(running, Recover(reason="crash"))
    assert recovered.turn is not None
    assert recovered.turn.attempt == 2
    assert step(recovered, late, 1.0).records == ()


def test_a_failed_turn_keeps_its_reason_and_the_next_message_starts() -> None:
    running = after(FRESH, said("a"), said("b"))
    failed = step(running, failure(running), 1.0)
    assert kinds(failed) == ["TurnFailed", "TurnStarted"]
    assert failed.session.last_failure is not None
    assert "too slow" in explain(failed.session, 2.0)


def test_a_stop_cancels_the_running_turn_only() -> None:
    running = after(FRESH, said("a"), said("b"))
    result = step(running, StopTurn(reason="user"), 1.0)
    assert of(CancelTurn, result)
    assert result.session.turn is not None
    assert result.session.turn.id == "b"


def test_a_stop_can_name_a_waiting_turn() -> None:
    running = after(FRESH, said("a"), said("b"), said("c"))
    result = step(running, StopTurn(reason="left", turn=TurnId("b")), 1.0)
    assert not of(CancelTurn, result)
    assert [turn.id for turn in result.session.queue] == ["c"]


def test_a_stop_of_something_that_is_over_changes_nothing() -> None:
    idle = after(FRESH, said("a"))
    idle = after(idle, answer(idle))
    assert step(idle, StopTurn(reason="late"), 1.0).records == ()
    assert step(idle, StopTurn(reason="late", turn=TurnId("a")), 1.0).records == ()


def test_an_announced_stop_marks_work_in_flight_once_and_idle_sessions_not_at_all() -> None:
    assert step(FRESH, AnnounceStop(reason="restart"), 1.0).records == ()
    marked = step(after(FRESH, said("a")), AnnounceStop(reason="restart"), 1.0)
    assert kinds(marked) == ["MarkedResumePending"]
    assert step(marked.session, AnnounceStop(reason="restart"), 1.0).records == ()


def test_after_an_announced_stop_no_new_turn_starts_and_what_waits_starts_after_the_restart() -> None:
    stopping = after(FRESH, said("a"), said("b"), AnnounceStop(reason="restart"))
    finished = step(stopping, answer(stopping), 1.0)
    assert kinds(finished) == ["TurnFinished"]
    assert finished.session.phase == Phase.RESUME_PENDING
    assert is_pending(finished.session)

    back = step(finished.session, Recover(reason="restart"), 2.0)
    assert kinds(back) == ["TurnStarted"]
    assert back.session.turn is not None
    assert back.session.turn.id == "b"
    assert back.session.interruptions == 0


def test_a_turn_that_finishes_in_time_clears_the_mark() -> None:
    stopping = after(FRESH, said("a"), AnnounceStop(reason="restart"))
    done = after(stopping, answer(stopping))
    assert done.phase == Phase.IDLE
    assert done.resume_reason == ""
    assert not is_pending(done)


def test_a_crash_and_an_announced_stop_recover_to_the_same_turn_with_their_own_reason() -> None:
    running = after(FRESH, said("a"))
    crashed = step(running, Recover(reason="crash"), 1.0)
    stopped = step(after(running, AnnounceStop(reason="shutdown")), Recover(reason="crash"), 1.0)

    reasons = [r.reason for result in (crashed, stopped) for r in result.records if isinstance(r, TurnInterrupted)]
    assert reasons == ["crash", "shutdown"]
    for result in (crashed, stopped):
        assert kinds(result) == ["TurnInterrupted", "TurnStarted"]
        assert result.session.phase == Phase.RUNNING
        assert of(BeginTurn, result)


def test_three_interruptions_without_a_finished_turn_suspend_and_a_finished_turn_forgives() -> None:
    session = after(FRESH, said("a"), Recover(reason="crash"), Recover(reason="crash"))
    forgiven = after(session, answer(session))
    assert forgiven.interruptions == 0

    suspended = step(session, Recover(reason="crash"), 1.0)
    assert suspended.session.phase == Phase.SUSPENDED
    assert not of(BeginTurn, suspended)
    assert not is_pending(suspended.session)
    assert f"interrupted {SUSPEND_AFTER} times" in explain(suspended.session, 2.0)
    assert of(Reroute, step(suspended.session, said("b"), 1.0))


def test_a_resumed_session_takes_up_the_turn_it_was_suspended_with() -> None:
    suspended = after(FRESH, said("a"), said("b"), Suspend(reason="operator"))
    assert suspended.phase == Phase.SUSPENDED
    resumed = step(suspended, Resume(reason="operator"), 1.0)
    assert kinds(resumed) == ["Resumed", "TurnStarted"]
    assert resumed.session.turn is not None
    assert resumed.session.turn.id == "a"
    assert [turn.id for turn in resumed.session.queue] == ["b"]


def test_ending_a_session_tells_everyone_who_waits_and_is_final() -> None:
    running = after(FRESH, said("a"), said("b"))
    result = step(running, End(reason="done"), 1.0)
    assert kinds(result) == ["TurnFailed", "TurnFailed", "Ended"]
    assert of(CancelTurn, result)
    assert of(Reroute, step(result.session, said("c"), 1.0))
    assert of(Refuse, step(result.session, End(reason="again"), 1.0))


@pytest.mark.parametrize("event", [Resume(reason="x")])
def test_a_command_in_the_wrong_phase_is_refused_with_the_phase(event: Event) -> None:
    [refusal] = of(Refuse, step(FRESH, event, 1.0))
    assert isinstance(refusal, Refuse)
    assert "idle" in str(refusal.error)


def test_a_log_whose_first_record_is_damaged_still_gives_a_session() -> None:
    entries = [
        LogEntry(seq=Seq(0), record=BadRecord(problem="flipped")),
        *(LogEntry(seq=Seq(1 + i), record=r) for i, r in enumerate(step(FRESH, said("a"), 1.0).records)),
    ]
    session = replay(SessionId("s"), entries)
    assert session is not None
    assert session.phase == Phase.RUNNING
    assert session.next_seq == 3


def test_an_answer_is_encoded_as_one_chat_message() -> None:
    assert encode_answer("é\n") == '{"role":"assistant","content":"é\\n"}'.encode()


# ---------------------------------------------------------------- whatever happens, in whatever order

NAMES = st.integers(0, 10_000).map(str)
ACTIONS = st.lists(
    st.sampled_from(
        [
            "say",
            "say",
            "say",
            "answer",
            "answer",
            "fail",
            "stop",
            "announce",
            "crash",
            "suspend",
            "resume",
            "late",
            "end",
        ]
    ),
    max_size=60,
)


def play(actions: list[str]) -> tuple[Session, list[Record], list[str], list[Effect]]:
    session = FRESH
    log: list[Record] = [STARTED]
    accepted: list[str] = []
    effects: list[Effect] = []
    for number, action in enumerate(actions):
        event = event_for(action, session, number)
        if event is None:
            continue
        result = step(session, event, float(number), max_queue=4)
        session = result.session
        log.extend(result.records)
        effects.extend(result.effects)
        accepted.extend(effect.turn for effect in result.effects if isinstance(effect, Accept))
    return session, log, accepted, effects


def event_for(action: str, session: Session, number: int) -> Event | None:
    working = session.phase == Phase.RUNNING and session.turn is not None
    simple: dict[str, Event] = {
        "say": said(f"m{number}"),
        "stop": StopTurn(reason="stop"),
        "announce": AnnounceStop(reason="restart"),
        "crash": Recover(reason="crash"),
        "suspend": Suspend(reason="operator"),
        "resume": Resume(reason="operator"),
        "end": End(reason="done"),
        "late": StopTurn(reason="late", turn=TurnId("nobody")),
    }
    if action in simple:
        return simple[action]
    if not working:
        return None
    return answer(session) if action == "answer" else failure(session)


@given(ACTIONS)
def test_the_state_is_always_what_its_records_say(actions: list[str]) -> None:
    session, log, _, _ = play(actions)
    assert replay(SessionId("s"), [LogEntry(seq=Seq(i), record=r) for i, r in enumerate(log)]) == session


@given(ACTIONS)
def test_no_accepted_message_is_ever_lost_or_shown_twice_and_order_is_kept(actions: list[str]) -> None:
    session, log, accepted, _ = play(actions)
    ended = [r.turn for r in log if isinstance(r, TurnFinished | TurnFailed)]
    open_turns = [turn.id for turn in (*((session.turn,) if session.turn else ()), *session.queue)]
    assert sorted(ended + open_turns) == sorted(accepted)

    transcript = Transcript()
    transcript.extend((Seq(i), r) for i, r in enumerate(log))
    shown = [bytes(m) for m in transcript.messages if b'"user"' in bytes(m)]
    assert len(shown) == len(set(shown))
    numbers = [int(m.split(b'"m')[1].split(b'"')[0]) for m in shown]
    assert numbers == sorted(numbers)
    finished = [r for r in log if isinstance(r, TurnFinished)]
    assert len(transcript.messages) == len(shown) + len(finished)
    entries = [LogEntry(seq=Seq(i), record=r) for i, r in enumerate(log)]
    assert [m.message for m in stored_messages(entries)[0]] == transcript.messages


@given(ACTIONS)
def test_one_turn_at_a_time_and_pending_means_work_is_open(actions: list[str]) -> None:
    session, _, _, effects = play(actions)
    assert is_pending(session) == (
        session.phase not in (Phase.SUSPENDED, Phase.ENDED) and bool(session.turn or session.queue)
    )
    assert explain(session, 1e9)
    begun = [(effect.turn.id, effect.turn.attempt) for effect in effects if isinstance(effect, BeginTurn)]
    assert len(begun) == len(set(begun))


@given(ACTIONS)
def test_a_transcript_can_be_dropped_and_rebuilt_at_any_point(actions: list[str]) -> None:
    _, log, _, _ = play(actions)
    live = Transcript()
    for index, record in enumerate(log):
        live.extend([(Seq(index), record)])
        live.extend([(Seq(index), record)])  # the same again changes nothing
    rebuilt = Transcript()
    rebuilt.extend((Seq(i), r) for i, r in enumerate(log))
    assert rebuilt.messages == live.messages


def test_evolve_counts_every_record() -> None:
    session = FRESH
    for record in step(FRESH, said("a"), 1.0).records:
        before = session.next_seq
        session = evolve(session, record)
        assert session.next_seq == before + 1
