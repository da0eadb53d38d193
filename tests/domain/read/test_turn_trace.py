"""What a trace says of a message: each step with its time, and what is wrong with the time between them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hermes.domain.cause.cause import HoldCause, InterruptionCause
from hermes.domain.ids import InboundKey, Seq, SessionId, TurnId
from hermes.domain.outbox import reply_id
from hermes.domain.outbox_message import DeadLetter, DeliveredMessage, OutboxKind, OutboxMessage
from hermes.domain.read.trace import TraceLine, TraceState
from hermes.domain.read.trace_delivery import Delivery, outgoing_in, taken_line
from hermes.domain.read.turn_trace import fold_trace
from hermes.domain.read.views import TurnRecord
from hermes.domain.session.jobs import RetryReport
from hermes.domain.session.protocol import AnnounceStop, Recover, Resume, StopTurn, Suspend
from hermes.domain.session.routed_question import question_id
from hermes.domain.source import Place, Source
from hermes.domain.turn.submission import Seen
from hermes.domain.turn.tool_call import CallJudgement, JudgeVerdict
from hermes.domain.turn.turn_failure import Failure, FailureKind
from tests.actors.talk import SessionTalk, does, needs_leave, reads, said

CUT = "the daemon ended unexpectedly; nothing was recorded for 1.0 s"
PLACE = Place(platform="toy", chat="c1")
ANN = Source(platform="toy", user="ann", place=PLACE)
KEY = InboundKey("toy:1")


def entries(*talks: SessionTalk) -> list[TurnRecord]:
    return [
        TurnRecord(session=talk.session.id, seq=Seq(seq), record=record)
        for talk in talks
        for seq, record in enumerate(talk.log)
    ]


def traced(
    *talks: SessionTalk, deliveries: Mapping[str, Delivery] | None = None, alive: bool = True
) -> list[TraceLine]:
    now = talks[-1].now
    return fold_trace(entries(*talks), deliveries or {}, {KEY}, now=now, alive=alive)


def line_of(*talks: SessionTalk, deliveries: Mapping[str, Delivery] | None = None, alive: bool = True) -> TraceLine:
    [line] = traced(*talks, deliveries=deliveries, alive=alive)
    return line


def later(talk: SessionTalk, seconds: float) -> SessionTalk:
    talk.now += seconds
    return talk


def begun(source: Source = ANN) -> SessionTalk:
    talk = SessionTalk()
    talk.do(said("a", source=source, inbound=KEY))
    return talk


def answered() -> SessionTalk:
    talk = later(begun(), 2)
    talk.answer()
    return later(talk, 1)


def steps(line: TraceLine) -> list[str]:
    return [step.what for step in line.steps]


def outgoing(**changes: object) -> OutboxMessage:
    plain = OutboxMessage(id=reply_id(TurnId("a")), kind=OutboxKind.REPLY, place=PLACE, text="yes", at=3.0)
    return replace(plain, **changes)  # type: ignore[arg-type]


SENT = DeliveredMessage(id="reply:a", kind=OutboxKind.REPLY, place=PLACE, at=3.0, sent_at=3.4, messages=("m1", "m2"))


# ---------------------------------------------------------------- turns


def test_a_message_is_followed_from_its_key_to_what_was_sent() -> None:
    line = line_of(answered(), deliveries={"reply:a": SENT})
    assert (line.inbound, line.turn, line.session, line.platform) == (KEY, "a", "s", "toy")
    assert (line.state, line.sent, line.took_s) == (TraceState.SENT, ("m1", "m2"), 2.0)
    assert steps(line) == ["accepted", "turn started", "model", "answered", "sent"]
    assert [step.took_s for step in line.steps] == [None, None, 2.0, None, SENT.sent_at - SENT.at]
    assert line.steps[2].detail == "m: the answer (3 tokens in, 2 out)"
    assert line.problems == ()


def test_tool_calls_have_their_outcome_and_their_time() -> None:
    talk = begun()
    talk.reply(does("w"))
    later(talk, 0.5).returns("w")
    later(talk, 3).answer()
    line = line_of(talk)
    assert steps(line)[2:] == ["model", "tool", "model", "answered", "sent"]
    assert (line.steps[3].detail, line.steps[3].took_s) == ("write w (ok)", 0.5)
    assert (line.steps[4].took_s, line.model_calls, line.tool_calls) == (3.0, 2, 1)


def test_a_call_of_an_unknown_tool_counts() -> None:
    talk = begun()
    talk.reply(replace(does("w"), problem="there is no such tool"))
    later(talk, 3).answer()
    line = line_of(talk)
    assert (line.steps[3].what, line.tool_calls) == ("tool", 1)


def test_a_crash_is_one_line_with_two_attempts_and_the_gap() -> None:
    talk = later(begun(), 12)
    talk.crash()
    later(talk, 1).answer()
    line = line_of(talk, deliveries={"reply:a": replace(SENT, at=talk.now, sent_at=talk.now)})
    assert (line.attempts, line.interruptions, line.model_calls) == (2, 1, 1)
    assert steps(line) == ["accepted", "turn started", "interrupted", "turn started", "model", "answered", "sent"]
    assert line.problems == ("the daemon ended unexpectedly; nothing was recorded for 12.0 s",)
    assert line.steps[2].detail == "during a model call"


def test_a_call_that_was_cut_off_has_no_outcome_and_one_that_reads_runs_again() -> None:
    talk = begun()
    talk.reply(does("w"))
    later(talk, 1).crash()
    assert "write has no recorded outcome" in line_of(talk).problems
    talk = begun()
    talk.reply(reads("r"))
    later(talk, 1).crash()
    line = line_of(talk)
    assert "it was cut off; since it only reads, it ran again" in line.problems
    assert line.tool_calls == 2


def test_waiting_behind_another_turn_is_no_gap() -> None:
    talk = begun()
    later(talk, 5).do(said("b", source=ANN))
    later(talk, 20).answer()
    first, second = traced(talk)
    assert first.turn == "a"
    assert (second.turn, second.state, second.problems) == ("b", TraceState.RUNNING, ())
    assert second.steps[1].detail == "after waiting 20.0 s"


def test_a_pause_in_which_nothing_went_on_is_a_gap() -> None:
    talk = begun()
    talk.do(said("b", source=ANN))
    talk.do(AnnounceStop(reason="restart: new version"))
    later(talk, 1).answer()  # and what waits is not begun: the daemon is leaving
    later(talk, 30).do(Recover(cause=InterruptionCause.RESTART))
    _, second = traced(talk)
    assert "stop announced" in steps(second)
    assert second.problems == ("nothing was going on for 30.0 s",)


def test_a_drain_is_not_time_in_which_nothing_was_recorded() -> None:
    talk = begun()
    talk.do(AnnounceStop(reason="restart: new version"))
    later(talk, 7).do(Recover(cause=InterruptionCause.CRASH))
    assert line_of(talk).problems == ("restart: new version; it stopped and came back within 7.0 s",)


def test_what_was_held_until_the_person_wrote_again_says_so() -> None:
    talk = later(begun(), 1)
    talk.do(Recover(cause=InterruptionCause.CRASH, hold=HoldCause.CONFIGURED))
    later(talk, 40)
    assert line_of(talk).problems == (
        CUT,
        "open for 40.0 s",
    )
    assert line_of(talk).state is TraceState.INTERRUPTED
    talk.do(said("b", source=ANN))
    first, second = traced(talk)
    assert first.problems == (CUT,)
    assert "(attempt 2) after waiting 40.0 s to go on" in [step.detail for step in first.steps]
    assert (second.into, second.state) == ("a", TraceState.RUNNING)


def test_a_question_waits_without_a_gap_and_shows_who_answered() -> None:
    talk = begun()
    talk.reply(needs_leave("w"))
    later(talk, 30)
    waiting = line_of(talk)
    assert (waiting.state, waiting.problems) == (TraceState.ASKING, ())
    later(talk, 31)
    assert line_of(talk).problems == ("open for 1.0 min",)
    talk.tell("once")
    line = line_of(talk)
    asked = next(step for step in line.steps if step.what == "asked")
    assert (asked.detail, asked.took_s) == ("write w (of the owner and the admins): answered, by api, owner", 61.0)
    assert line.problems == ()


def test_a_failure_is_a_problem_and_a_stop_is_none() -> None:
    talk = begun()
    talk.fail(FailureKind.TIMEOUT)
    failed = line_of(talk, deliveries={"reply:a": SENT})
    assert (failed.state, failed.problems) == (TraceState.FAILED, ("timeout",))
    talk = begun()
    talk.do(StopTurn(reason="/stop"))
    stopped = line_of(talk, deliveries={"reply:a": SENT})
    assert (stopped.state, stopped.problems) == (TraceState.STOPPED, ())


def test_a_suspended_turn_says_why_and_goes_on_when_it_is_resumed() -> None:
    talk = begun()
    talk.do(Suspend(reason="asked for"))
    line = line_of(talk)
    assert line.state is TraceState.SUSPENDED
    assert line.problems[-1] == "asked for"
    later(talk, 100).do(Resume(reason="again"))
    assert line_of(talk).state is TraceState.RUNNING


def test_a_message_that_became_part_of_a_turn_has_its_answer() -> None:
    talk = begun()
    talk.reply(does("w"))
    talk.do(said("b", busy="steer", source=ANN))
    talk.returns("w")
    talk.answer()
    _, second = traced(talk, deliveries={"reply:a": SENT})
    assert (second.into, second.state, second.sent) == ("a", TraceState.SENT, ("m1", "m2"))


def test_a_trace_follows_its_turn_through_a_compression() -> None:
    talk = begun()
    talk.do(said("b", source=ANN))
    talk.fail(FailureKind.CONTEXT_OVERFLOW)
    later(talk, 4)
    child = talk.summarised()
    child.now = talk.now
    later(child, 1).answer()
    first, second = traced(talk, child)
    assert (first.session, first.state) == ("s2", TraceState.ANSWERED)
    assert steps(first)[2:5] == ["summary", "moved", "model"]
    assert first.steps[2].took_s == 4.0
    assert (second.session, second.state) == ("s2", TraceState.RUNNING)


def test_what_is_open_without_a_daemon_is_a_gap() -> None:
    line = line_of(begun(), alive=False)
    assert line.state is TraceState.INTERRUPTED
    assert line.problems == ("no daemon runs; it goes on when one does",)


# ---------------------------------------------------------------- what was sent


def test_an_answer_that_waits_in_the_outbox_says_what_keeps_it() -> None:
    later_on = later(answered(), 27)
    line = line_of(later_on, deliveries={"reply:a": outgoing(tries=3, problem="no route")})
    assert (line.state, line.problems) == (TraceState.SENDING, ("not sent for 28.0 s: no route (3 tries)",))


def test_an_answer_that_nobody_could_be_told_is_a_problem() -> None:
    letter = DeadLetter(
        id="reply:a",
        session=SessionId("s"),
        turn=TurnId("a"),
        messages=(),
        source=ANN,
        options=b"{}",
        problem="the chat is gone",
        at=9.0,
        undelivered=outgoing(),
    )
    line = line_of(answered(), deliveries={"reply:a": letter})
    assert (line.state, line.problems) == (TraceState.UNDELIVERED, ("given up: the chat is gone",))


def test_an_answer_of_which_nothing_says_that_it_was_sent_is_a_problem() -> None:
    assert line_of(answered()).problems == ("the answer is neither sent nor queued",)
    forgotten = fold_trace(entries(answered()), {}, set(), now=9.0)
    assert forgotten[0].problems == ()
    fetched = begun(Source(platform="api"))
    fetched.answer()
    assert line_of(fetched).problems == ()


def test_a_possible_repeat_and_a_late_delivery_are_problems() -> None:
    repeated = line_of(answered(), deliveries={"reply:a": replace(SENT, repeated=True)})
    assert repeated.problems == ("a part of it may have arrived twice",)
    late = line_of(answered(), deliveries={"reply:a": replace(SENT, sent_at=SENT.at + 120)})
    assert late.problems == ("it took 2.0 min",)


def test_a_question_that_was_sent_is_a_step() -> None:
    talk = begun()
    talk.reply(needs_leave("w"))
    name = question_id(TurnId("a"), "w")
    assert name in outgoing_in(entries(talk))
    line = line_of(talk, deliveries={name: replace(SENT, id=name, kind=OutboxKind.QUESTION, at=1.0)})
    assert "question sent" in steps(line)
    assert line.sent == ("m1", "m2")


def test_a_command_is_a_line_of_its_own() -> None:
    seen = Seen(key=KEY, session=SessionId("s"), turn=TurnId("x"), fingerprint=b"", at=2.0)
    line = taken_line(seen, [replace(SENT, id=f"command:{KEY}")], now=9.0)
    assert (line.state, line.sent, steps(line)) == (TraceState.SENT, ("m1", "m2"), ["taken", "sent"])
    assert taken_line(seen, [], now=9.0).state is TraceState.TAKEN


def retry(talk: SessionTalk, tries: int, delay_s: float) -> RetryReport:
    turn, failure = talk.turn, Failure(kind=FailureKind.RATE_LIMIT, message="slow down")
    return RetryReport(
        turn=turn.id, attempt=turn.attempt, replies=0, model="m", failure=failure, tries=tries, delay_s=delay_s
    )


def test_retries_say_where_the_time_went() -> None:
    talk = later(begun(), 1)
    talk.do(retry(talk, 1, 2.0))
    later(talk, 3).answer()
    line = line_of(later(talk, 1))
    walked = [(step.what, step.at, step.took_s) for step in line.steps if step.what in ("model", "waiting")]
    assert walked == [("model", 1.0, 1.0), ("waiting", 2.0, 2.0), ("model", 4.0, 1.0)]
    assert "rate_limit" in line.problems


def test_late_retry_is_ignored() -> None:
    talk = begun()
    late = retry(talk, 1, 2.0)
    talk.answer()
    assert talk.do(late).records == ()


def test_waiting_for_the_model_is_not_model_time() -> None:
    talk = later(begun(), 10)
    talk.do(replace(talk.model_says("yes", ()), waited_s=8.0))
    walked = [(step.what, step.took_s) for step in line_of(talk).steps if step.what in ("model", "waiting")]
    assert walked == [("waiting", 8.0), ("model", 2.0)]


def test_judgement_of_a_model_is_a_step() -> None:
    talk = begun()
    found = CallJudgement(verdict=JudgeVerdict.APPROVE, model="small", confidence=0.97, reason="It is build output.")
    talk.reply(replace(needs_leave("w"), summary="write: build", judgement=found))
    [step] = [step for step in line_of(talk).steps if step.what == "judged"]
    assert step.detail == "write: build: approve by small, confidence 0.97: It is build output."
    assert line_of(talk).problems == ()
