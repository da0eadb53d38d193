"""A turn's tool calls: in which order they run, who is asked, what the model is told of each."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.domain.access.grants import facts_of, granted_by, rules_in
from hermes.domain.access.question import asked_by, open_question
from hermes.domain.access.role import Role
from hermes.domain.cause.cause import InterruptionCause
from hermes.domain.events import CallAnswered, CallAsked, CallBegan, CallEnded, Steered, TurnAnswered, TurnGaveUp
from hermes.domain.ids import TurnId
from hermes.domain.operations import PutFact
from hermes.domain.read.explain import explain
from hermes.domain.records import Answered, Asked, ToolFinished, TurnInterrupted, TurnStarted
from hermes.domain.session.machine import step
from hermes.domain.session.protocol import Accept, AnnounceStop, Answer, Resume, SetPreference, StopTurn, TurnLimits
from hermes.domain.session.state import Phase, is_pending
from hermes.domain.source import Place, Source
from hermes.domain.turn.submission import Handling
from hermes.domain.turn.tool_call import Call, CallJudgement, CallOutcome, Gate, JudgeVerdict, Verdict
from hermes.domain.turn.usage import Usage
from tests.actors.talk import (
    API,
    DEFAULTS,
    FRESH,
    USAGE,
    SessionTalk,
    asks,
    does,
    names,
    needs_leave,
    of,
    reads,
    refusal,
    result,
    said,
    told,
)

TELEGRAM = Source(platform="telegram", user="7")
OTHER_ADMIN = Source(platform="telegram", user="1", role=Role.ADMIN)
STRANGER = Source(platform="telegram", user="8")


def at_work(*calls: Call, limits: TurnLimits = DEFAULTS) -> SessionTalk:
    """A turn whose model has asked for these."""
    talk = SessionTalk(limits=limits)
    talk.say("a")
    talk.reply(*calls)
    return talk


def outcomes(talk: SessionTalk) -> dict[str, CallOutcome]:
    return {record.call: record.outcome for record in talk.log if isinstance(record, ToolFinished)}


# ---------------------------------------------------------------- the loop


def test_a_call_is_recorded_before_it_runs_and_its_outcome_before_the_model_sees_it() -> None:
    talk = SessionTalk()
    talk.say("a")
    asked = talk.reply(does("c1"), text="let me see")
    assert names(asked.records) == ["ModelReplied", "ToolStarted"]
    assert talk.work() == ["c1"]
    ran = talk.returns("c1", "42")
    assert names(ran.records) == ["ToolFinished"]
    assert talk.work() == ["think"]
    talk.answer("it is 42")
    assert talk.shown() == ["user: a", "assistant calls c1", "c1: 42", "assistant: it is 42"]
    assert talk.phase == Phase.IDLE


def test_what_a_watcher_sees_of_a_call() -> None:
    talk = SessionTalk()
    talk.say("a")
    [began] = told(CallBegan, talk.reply(does("c1")))
    [ended] = told(CallEnded, talk.returns("c1"))
    assert began == CallBegan(session=talk.session.id, turn=TurnId("a"), call="c1", name="write", summary="write c1")
    assert ended == CallEnded(
        session=talk.session.id,
        turn=TurnId("a"),
        call="c1",
        name="write",
        outcome=CallOutcome.OK,
        took_s=0.5,
        summary="write c1",
    )


def test_the_usage_of_a_turn_is_that_of_all_its_model_calls() -> None:
    talk = at_work(does("c1"))
    talk.returns("c1")
    [answered] = told(TurnAnswered, talk.answer())
    assert isinstance(answered, TurnAnswered)
    assert answered.usage == USAGE + USAGE == talk.session.usage == Usage(prompt_tokens=6, completion_tokens=4)


def test_calls_that_change_things_run_one_after_the_other_in_the_order_given() -> None:
    talk = at_work(does("c1"), does("c2"), does("c3"))
    for call in ("c1", "c2", "c3"):
        assert talk.work() == [call]
        talk.returns(call)
    assert talk.work() == ["think"]


def test_calls_that_only_read_run_together_as_many_as_are_allowed() -> None:
    talk = at_work(*(reads(f"r{n}") for n in range(4)), limits=TurnLimits(max_parallel=3))
    assert talk.work() == ["r0", "r1", "r2"]
    talk.returns("r1")
    assert talk.work() == ["r0", "r2", "r3"]
    for call in ("r3", "r0"):
        talk.returns(call)
        assert "think" not in talk.work()
    talk.returns("r2")
    assert talk.work() == ["think"]


def test_a_call_that_changes_things_waits_for_the_ones_before_it_and_those_after_it_wait_for_it() -> None:
    talk = at_work(reads("r1"), reads("r2"), does("c"), reads("r3"))
    assert talk.work() == ["r1", "r2"]
    talk.returns("r1")
    assert talk.work() == ["r2"]
    talk.returns("r2")
    assert talk.work() == ["c"]
    talk.returns("c")
    assert talk.work() == ["r3"]


def test_a_report_of_a_call_counts_once_and_only_for_the_attempt_it_belongs_to() -> None:
    talk = at_work(does("c1"), does("c2"))
    first = talk.tool_returns("c1")
    assert talk.do(talk.tool_returns("c2")).records == ()  # it has not begun
    assert talk.do(talk.tool_returns("c9")).records == ()
    talk.do(first)
    assert talk.do(first).records == ()
    second = talk.tool_returns("c2")
    talk.crash()
    assert talk.do(second).records == ()


def test_the_model_has_the_last_word_without_tools_when_it_has_replied_often_enough() -> None:
    talk = at_work(does("c1"), limits=TurnLimits(max_replies=2))
    talk.returns("c1")
    assert talk.work() == ["think"]
    talk.reply(does("c2"))
    talk.returns("c2")
    assert talk.work() == ["think, for the last time"]
    talk.answer()
    talk.say("b")
    assert talk.work() == ["think"]


# ---------------------------------------------------------------- refusals


def test_model_gets_the_error_of_one_call_and_the_others_continue() -> None:
    talk = at_work(does("bad", problem="there is no tool 'x'"), does("c1"))
    assert talk.work() == ["c1"]
    assert talk.shown()[-1] == "bad: there is no tool 'x'"
    assert outcomes(talk) == {"bad": CallOutcome.ERROR}


def test_blocked_call_never_runs_and_cannot_be_approved() -> None:
    blocked = does("bad", gate=Gate(verdict=Verdict.BLOCK, reason="it wipes the disk", rules=("rm",)))
    talk = SessionTalk(limits=TurnLimits(granted=frozenset({"rm"})))
    talk.do(SetPreference(name="yolo", value=True, reason="asked"))
    talk.say("a")
    talk.reply(blocked)
    assert outcomes(talk) == {"bad": CallOutcome.DENIED}
    assert "it wipes the disk" in talk.shown()[-1]
    assert talk.work() == ["think"]


def test_calls_that_are_all_refused_leave_the_model_to_go_on() -> None:
    talk = at_work(does("b1", problem="no"), does("b2", problem="no"))
    assert talk.work() == ["think"]


# ---------------------------------------------------------------- leave to run


def test_a_call_that_needs_leave_makes_the_turn_wait_durably_and_says_for_what() -> None:
    talk = SessionTalk()
    talk.say("a")
    taken = talk.reply(needs_leave("c1"))
    assert names(taken.records) == ["ModelReplied", "Asked"]
    assert (talk.phase, talk.work()) == (Phase.WAITING, [])
    assert is_pending(talk.session)
    [asked] = told(CallAsked, taken)
    assert isinstance(asked, CallAsked)
    assert asked.question.startswith("May I do this?\n`write c1`\nIt deletes.\n(session: ")
    assert asked.approval
    assert asked.choices == ("once", "session", "always", "deny")
    assert "write needs permission: it deletes" in explain(talk.session, 2.0)


def test_leave_for_once_runs_this_call_and_asks_again_for_the_next() -> None:
    talk = at_work(needs_leave("c1"), needs_leave("c2"))
    taken = talk.tell("once")
    assert names(taken.records) == ["Answered", "ToolStarted"]
    [answered] = told(CallAnswered, taken)
    assert isinstance(answered, CallAnswered)
    assert (answered.answer, answered.by) == ("once", "api")
    assert talk.work() == ["c1"]
    talk.returns("c1")
    assert talk.phase == Phase.WAITING
    assert talk.session.grants == ()


def test_leave_for_the_session_covers_the_same_rules_and_no_others() -> None:
    talk = at_work(needs_leave("c1", "rm"), needs_leave("c2", "rm"), needs_leave("c3", "rm", "sudo"))
    talk.tell("session")
    talk.returns("c1")
    assert talk.work() == ["c2"]
    talk.returns("c2")
    assert talk.phase == Phase.WAITING
    assert talk.session.grants == ("rm",)


def test_only_leave_for_good_becomes_a_fact() -> None:
    for answer, rules in (("always", ("rm", "sudo")), ("session", ()), ("once", ()), ("deny", ())):
        talk = at_work(needs_leave("c1", "rm", "sudo"))
        before = talk.session
        granted = granted_by(before, talk.tell(answer).records)
        assert granted == rules
    assert facts_of(("rm",)) == [PutFact(name="grant:rm", value=b"1")]
    assert rules_in(["grant:rm", "grant:sudo"]) == {"rm", "sudo"}


def test_what_is_granted_in_every_session_is_not_asked_for() -> None:
    talk = at_work(needs_leave("c1", "rm"), limits=TurnLimits(granted=frozenset({"rm"})))
    assert talk.work() == ["c1"]
    partly = at_work(needs_leave("c1", "rm", "sudo"), limits=TurnLimits(granted=frozenset({"rm"})))
    assert partly.phase == Phase.WAITING


def test_a_gate_without_rules_is_asked_for_each_time() -> None:
    bare = does("c1", gate=Gate(verdict=Verdict.ASK, reason="odd"))
    talk = at_work(bare, limits=TurnLimits(granted=frozenset({"rm"})))
    talk.tell("always")
    assert talk.session.grants == ()
    talk.returns("c1")
    talk.reply(bare)
    assert talk.phase == Phase.WAITING


def test_a_person_who_trusts_it_all_is_not_asked() -> None:
    talk = SessionTalk()
    talk.do(SetPreference(name="yolo", value=True, reason="asked"))
    talk.say("a")
    talk.reply(needs_leave("c1"))
    assert talk.work() == ["c1"]


def judged(call: Call, verdict: JudgeVerdict = JudgeVerdict.APPROVE) -> Call:
    return replace(
        call, judgement=CallJudgement(verdict=verdict, model="small", confidence=0.97, reason="Build output.")
    )


def test_call_that_a_model_approved_runs_and_says_so() -> None:
    talk = at_work(judged(needs_leave("c1", "rm")))
    assert talk.work() == ["c1"]
    assert "Asked" not in names(talk.log)
    assert "(approved by the model small)" in explain(talk.session, 0)
    assert talk.session.grants == ()


def test_call_that_a_model_leaves_to_the_person_waits() -> None:
    talk = at_work(judged(needs_leave("c1", "rm"), JudgeVerdict.ASK))
    assert talk.phase == Phase.WAITING


def test_a_denied_call_is_told_to_the_model_and_the_next_one_is_asked_for() -> None:
    talk = at_work(needs_leave("c1"), needs_leave("c2"))
    talk.tell("deny")
    assert outcomes(talk) == {"c1": CallOutcome.DENIED}
    assert "the user denied this call" in talk.shown()[-1]
    assert talk.phase == Phase.WAITING
    talk.tell("deny")
    assert talk.work() == ["think"]


def test_a_call_is_asked_for_only_when_those_before_it_have_ended() -> None:
    talk = at_work(reads("r1"), needs_leave("c1"))
    assert (talk.phase, talk.work()) == (Phase.RUNNING, ["r1"])
    talk.returns("r1")
    assert talk.phase == Phase.WAITING


@pytest.mark.parametrize(
    ("word", "answer"),
    [("Yes", "once"), ("ok!", "once"), ("👍", "once"), ("No.", "deny"), ("session", "session"), ("ALWAYS", "always")],
)
def test_plain_words_are_an_answer_and_no_turn_of_their_own(word: str, answer: str) -> None:
    talk = at_work(needs_leave("c1"))
    taken = talk.say(word, turn="w")
    assert names(taken.records)[:3] == ["MessageReceived", "Merged", "Answered"]
    assert [record.answer for record in taken.records if isinstance(record, Answered)] == [answer]
    assert of(Accept, taken) == [Accept(turn=TurnId("w"), position=0, handling=Handling.ANSWER, into=TurnId("a"))]
    assert not any(word in line for line in talk.shown())
    assert talk.turn.merged == ("w",)


def test_other_words_wait_for_their_turn_and_the_call_waits_on() -> None:
    talk = at_work(needs_leave("c1"))
    [accept] = of(Accept, talk.say("what would that do?"))
    assert accept == Accept(turn=TurnId("what would that do?"), position=1, handling=Handling.QUEUED)
    assert talk.phase == Phase.WAITING


def test_plain_words_answer_even_when_the_queue_is_full() -> None:
    talk = at_work(needs_leave("c1"), limits=TurnLimits(max_queue=1))
    talk.say("b")
    assert refusal(talk.say("c"))
    talk.say("yes")
    assert talk.work() == ["c1"]


def test_an_answer_is_heard_once_for_the_call_it_names_and_only_if_it_is_one() -> None:
    talk = at_work(needs_leave("c1"))
    assert "does not wait for an answer to call c2" in refusal(talk.tell("once", call="c2"))
    assert "once, session, always, deny" in refusal(talk.tell("perhaps"))
    talk.tell("once", call="c1")
    assert "does not wait" in refusal(talk.tell("once"))
    assert talk.work() == ["c1"]


def owned(*calls: Call, who: Source, limits: TurnLimits = DEFAULTS) -> SessionTalk:
    talk = SessionTalk(session=replace(FRESH, owner="7", platform="telegram"), limits=limits)
    talk.do(said("a", source=who))
    talk.reply(*calls)
    return talk


USER = replace(TELEGRAM, role=Role.USER)
ADMIN = replace(TELEGRAM, role=Role.ADMIN)


def test_only_the_owner_and_admins_may_approve() -> None:
    talk = owned(needs_leave("c1"), who=USER)
    assert "only the person who began" in refusal(talk.tell("once", source=STRANGER))
    for word in ("once", "session", "always"):
        assert "only the owner and the admins" in refusal(talk.tell(word, source=USER))
    assert "only the owner and the admins" in refusal(talk.do(said("Yes!", source=USER)))
    assert step(talk.session, said("yes", source=STRANGER), 1.0).session.phase == Phase.WAITING
    assert step(talk.session, said("yes", source=ADMIN), 1.0).session.phase == Phase.RUNNING
    assert step(talk.session, Answer(answer="once", source=OTHER_ADMIN), 1.0).session.phase == Phase.RUNNING
    talk.tell("once", source=API)
    assert talk.work() == ["c1"]


def test_asker_may_deny_the_request() -> None:
    talk = owned(needs_leave("c1"), who=USER)
    talk.tell("deny", source=USER)
    assert outcomes(talk) == {"c1": CallOutcome.DENIED}


def test_an_admin_may_answer_no_question_of_the_model_in_somebody_elses_session() -> None:
    talk = owned(asks("q"), who=USER)
    assert "only the person who began" in refusal(talk.tell("red", source=OTHER_ADMIN))
    talk.tell("blue", source=USER)
    assert outcomes(talk) == {"q": CallOutcome.OK}


def test_an_admin_of_a_chat_platform_may_allow_something_for_good() -> None:
    talk = owned(needs_leave("c1"), who=ADMIN)
    question = open_question(talk.session)
    assert question is not None
    assert question.choices == ("once", "session", "always", "deny")
    assert granted_by(talk.session, talk.tell("always", source=ADMIN).records) == ("rm",)


# ---------------------------------------------------------------- questions


def test_a_question_waits_for_any_answer_which_is_the_calls_outcome() -> None:
    talk = at_work(asks("q"))
    assert "it asked: which one?" in explain(talk.session, 2.0)
    talk.say("the red one, always")
    assert talk.shown()[-1] == "q: the red one, always"
    assert outcomes(talk) == {"q": CallOutcome.OK}
    assert talk.session.grants == ()
    assert talk.work() == ["think"]


@pytest.mark.parametrize(
    ("answer", "heard"), [("2", "blue"), (" 1 ", "red"), ("3", "3"), ("0", "0"), ("green", "green")]
)
def test_a_choice_can_be_named_by_its_number(answer: str, heard: str) -> None:
    talk = at_work(asks("q", "red", "blue"))
    talk.tell(answer)
    assert talk.shown()[-1] == f"q: {heard}"


def test_an_empty_answer_to_a_question_is_none() -> None:
    talk = at_work(asks("q"))
    assert "empty" in refusal(talk.tell("  "))


def test_always_as_the_answer_to_a_question_grants_nothing() -> None:
    talk = at_work(asks("q"))
    before = talk.session
    assert granted_by(before, talk.tell("always").records) == ()
    assert talk.session.grants == ()


# ---------------------------------------------------------------- steering


def test_what_steers_is_shown_to_the_model_when_all_calls_have_their_outcome() -> None:
    talk = at_work(does("c1"), does("c2"))
    talk.say("b", busy="steer")
    talk.say("c")
    talk.say("d", busy="steer")
    talk.returns("c1")
    assert talk.queue == ["b", "c", "d"]
    steered = told(Steered, talk.returns("c2"))
    assert [event.message for event in steered if isinstance(event, Steered)] == ["b", "d"]
    assert talk.shown()[-2:] == ["user: b", "user: d"]
    assert talk.queue == ["c"]


def test_steering_person_learns_how_the_turn_failed() -> None:
    talk = at_work(does("c1"))
    talk.say("b", busy="steer")
    talk.returns("c1")
    gave_up = told(TurnGaveUp, talk.fail())
    assert [event.turn for event in gave_up if isinstance(event, TurnGaveUp)] == ["a", "b"]


# ---------------------------------------------------------------- stops


def test_a_stop_during_a_call_closes_it_and_the_rest_with_what_is_known_of_each() -> None:
    talk = at_work(does("c1"), does("c2"))
    taken = talk.do(StopTurn(reason="user"))
    assert names(taken.records) == ["ToolFinished", "ToolFinished", "TurnFailed"]
    assert outcomes(talk) == {"c1": CallOutcome.STOPPED, "c2": CallOutcome.NOT_RUN}
    assert "may or may not have had effects" in talk.shown()[-2]
    assert (talk.phase, talk.work()) == (Phase.IDLE, [])


def test_a_stop_while_a_call_waits_for_leave_takes_the_question_back() -> None:
    talk = at_work(needs_leave("c1"))
    talk.do(StopTurn(reason="user"))
    assert outcomes(talk) == {"c1": CallOutcome.NOT_RUN}
    assert talk.phase == Phase.IDLE
    assert "does not wait" in refusal(talk.tell("once"))


def test_an_interrupting_message_closes_the_calls_before_it_is_shown() -> None:
    talk = at_work(does("c1"))
    talk.say("b", busy="interrupt")
    assert talk.shown()[1] == "assistant calls c1"
    assert talk.shown()[2].startswith("c1: No recorded outcome: the user stopped the turn with a new message")
    assert talk.shown()[3] == "user: b"


# ---------------------------------------------------------------- recovery


def test_a_call_that_changes_things_is_closed_as_unknown_after_a_crash_and_the_model_is_told() -> None:
    talk = at_work(does("c1"), reads("r1"))
    taken = talk.crash()
    assert names(taken.records) == ["TurnInterrupted", "ToolFinished", "ToolFinished", "TurnStarted"]
    assert outcomes(talk) == {"c1": CallOutcome.UNKNOWN, "r1": CallOutcome.NOT_RUN}
    note = talk.shown()[-1]
    assert note.startswith("user: [Note from the system: This turn was interrupted: Hermes crashed. Continue it now.")
    assert "write (write c1)" in note
    assert talk.work() == ["think"]


def test_calls_that_only_read_simply_run_again_after_a_crash() -> None:
    talk = at_work(reads("r1"), reads("r2"))
    talk.returns("r1")
    taken = talk.crash()
    assert names(taken.records) == ["TurnInterrupted", "TurnStarted", "ToolStarted"]
    assert talk.work() == ["r2"]
    assert not any("Note from the system" in line for line in talk.shown())
    talk.returns("r2")
    assert talk.work() == ["think"]


def test_a_crash_between_two_calls_goes_on_with_the_next_one() -> None:
    talk = at_work(reads("r1"), does("c1"))
    talk.crash()
    assert talk.work() == ["r1"]
    talk.returns("r1")
    assert talk.work() == ["c1"]


def test_a_crash_after_all_outcomes_asks_the_model_again_with_one_note_that_says_why() -> None:
    talk = at_work(does("c1"))
    talk.returns("c1")
    talk.crash()
    assert talk.work() == ["think"]
    note = "user: [Note from the system: This turn was interrupted: Hermes crashed. Continue it now.]"
    assert talk.shown() == ["user: a", "assistant calls c1", "c1: done", note]
    assert (talk.turn.attempt, talk.turn.replies) == (2, 1)


def test_what_waits_for_a_person_waits_on_after_a_crash_and_that_is_no_interruption() -> None:
    for call in (needs_leave("c1"), asks("q")):
        talk = at_work(call)
        for _ in range(5):
            assert talk.crash().records == ()
        assert (talk.phase, talk.session.interruptions) == (Phase.WAITING, 0)
        talk.tell("once")
        assert talk.phase == Phase.RUNNING


def test_a_stop_announced_before_the_question_does_not_hold_up_what_comes_after_the_answer() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.say("b")
    talk.do(AnnounceStop(reason="restart"))
    talk.reply(needs_leave("c1"))
    talk.crash()
    assert (talk.phase, talk.session.interruptions) == (Phase.WAITING, 0)
    talk.tell("deny")
    talk.answer()
    assert talk.turn.id == "b"
    assert talk.work() == ["think"]


def test_steering_that_waited_during_a_crash_is_shown_after_the_note() -> None:
    talk = at_work(does("c1"))
    talk.say("b", busy="steer")
    talk.crash()
    assert talk.shown()[-2].startswith("user: [Note from the system")
    assert talk.shown()[-1] == "user: b"


def test_three_crashes_in_a_row_suspend_and_resuming_never_runs_a_call_again() -> None:
    talk = SessionTalk()
    talk.say("a")
    talk.crash()
    talk.crash()
    talk.reply(does("c1"))
    talk.crash()
    assert talk.phase == Phase.SUSPENDED
    assert talk.turn.calls == (), "nothing that ran is left open"
    talk.do(Resume(reason="operator"))
    assert talk.work() == ["think"]
    assert outcomes(talk) == {"c1": CallOutcome.UNKNOWN}


def test_the_records_of_a_recovery_name_their_reason() -> None:
    talk = at_work(does("c1"))
    records = talk.crash().records
    [cut] = [record for record in records if isinstance(record, TurnInterrupted)]
    [again] = [record for record in records if isinstance(record, TurnStarted)]
    assert (cut.cause, again.attempt) == (InterruptionCause.CRASH, 2)


def test_a_result_is_one_message_for_the_model() -> None:
    talk = at_work(does("c1"))
    talk.returns("c1", "é")
    assert talk.transcript().messages[-1] == result("c1", "é")


def test_unpredictable_command_gets_a_single_use_approval() -> None:
    gate = Gate(verdict=Verdict.ASK, reason="runs what another command prints", rules=("pipe-to-shell",), once=True)
    call = Call(id="c", name="terminal", gate=gate)
    assert asked_by(call, TurnId("t")).choices == ("once", "deny")


PLACE = Place(platform="telegram", chat="c")


def long_call() -> Call:
    return replace(needs_leave("c1"), name="terminal", whole="rm -rf " + "x" * 5_000, whole_file="/w/question-c1.txt")


def cut_question() -> SessionTalk:
    talk = SessionTalk(session=replace(FRESH, owner="7", platform="telegram"))
    talk.do(said("a", source=replace(ADMIN, place=PLACE)))
    talk.reply(long_call())
    return talk


def test_a_long_question_in_a_chat_is_allowed_only_after_it_was_shown_whole() -> None:
    talk = cut_question()
    [asked] = told(CallAsked, talk.last)
    assert isinstance(asked, CallAsked)
    assert asked.choices == ("show", "deny")
    for answer in ("once", "session", "always"):
        assert "see all of it first" in refusal(talk.tell(answer, source=API))
    assert "see all of it first" in refusal(talk.do(said("yes", source=ADMIN)))
    shown = talk.tell("show", source=ADMIN)
    [record] = shown.records
    assert isinstance(record, Asked)
    assert (record.choices, record.cut, record.file) == (("once", "deny"), False, "/w/question-c1.txt")
    assert talk.session.phase == Phase.WAITING
    talk.tell("once", source=ADMIN)
    assert talk.work() == ["c1"]


def test_a_long_question_can_be_denied_unseen() -> None:
    talk = cut_question()
    talk.tell("deny", source=ADMIN)
    assert talk.work() != ["c1"]


def test_a_long_question_outside_a_chat_is_asked_whole() -> None:
    talk = owned(long_call(), who=replace(ADMIN, place=None))
    [asked] = told(CallAsked, talk.last)
    assert isinstance(asked, CallAsked)
    assert "x" * 5_000 in asked.question
    assert "once" in asked.choices
