from __future__ import annotations

from contextlib import suppress
from dataclasses import fields, replace
from enum import StrEnum
from typing import get_args

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hermes.domain.cause.cause import EndCause, HoldCause, InterruptionCause, StopCause, SuspendCause
from hermes.domain.cause.legacy_reason import stop_cause
from hermes.domain.change import Change, ChangeAction, ChangeAuthor
from hermes.domain.ids import TurnId
from hermes.domain.job.job import Job, JobRun
from hermes.domain.job.schedule import Schedule
from hermes.domain.operations import Tally
from hermes.domain.outbox_message import DeadLetter, DeliveredMessage, OutboxMessage
from hermes.domain.process.process_record import ProcessRecord
from hermes.domain.records import BadRecord, MarkedResumePending, Record, TurnInterrupted, TurnStarted
from hermes.domain.session.state import Phase, Preferences, Session, Turn
from hermes.domain.source import Handover, Place, Source
from hermes.domain.turn.message import MessageOrigin
from hermes.domain.turn.submission import Seen
from hermes.domain.turn.tool_call import Call, Gate, JudgeVerdict
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.turn.usage import Usage
from hermes.storage.codec import (
    STORED,
    DamagedError,
    UnreadableError,
    build,
    open_as,
    open_record,
    pack,
    packer,
    seal,
    unpack,
    unseal,
    values_of,
)
from tests.storage.samples import NOW, head, message

KINDS = get_args(Record)
FEW = settings(max_examples=30, deadline=None)
ORDER = {
    "SessionStarted": "at key source reason parent assignment",
    "MessageReceived": "at turn messages source options steer inbound chain results",
    "Amended": "at turn messages replaces inbound role",
    "TurnStarted": "at turn attempt note",
    "Merged": "at turn into hidden",
    "PromptBuilt": "at message",
    "Instructed": "at message",
    "ModelReplied": "at turn message calls model usage context_tokens waited_s handed handed_message",
    "ModelRetried": "at turn model failure tries delay_s",
    "ToolStarted": "at turn call",
    "InnerCalled": "at turn call arguments",
    "InnerOutcome": "summary outcome",
    "ToolFinished": "at turn call message outcome took_s name spent within",
    "Asked": "at turn call question choices routed asked_in cut file",
    "Answered": "at turn call answer by role name",
    "TurnFinished": "at turn message model finish_reason usage context_tokens waited_s handed",
    "TurnFailed": "at turn failure told",
    "TurnInterrupted": "at turn reason cause hold",
    "MarkedResumePending": "at reason written cause by",
    "Suspended": "at reason cause",
    "Resumed": "at reason",
    "Ended": "at reason notice cause",
    "ResetBlocked": "at by reason",
    "Continued": "at successor reason",
    "Preferred": "at preferences reason",
    "Undone": "at seq offset turns reason",
    "CompressionStarted": "at reason focus cause",
    "CompressionFailed": "at reason counts end",
    "ContextCarried": (
        "at origin root messages preferences grants prompt turn waiting owner active_at turns usage "
        "summary_usage summary_model place origins starts instructions handed posted"
        " unreviewed_turns unreviewed_calls assignment goal"
    ),
    "AuthorityDropped": "at reason",
    "HandedOver": "at handover",
    "ChildStarted": "at turn child key purpose topics by name role call number task",
    "Posted": "at id place text shown queued",
    "GoalChanged": "at goal reason",
    "Goal": "text state max_turns max_usd turns usd_before note judged",
    "BadRecord": "problem",
    "Session": (
        "id key phase reason since created_at active_at next_seq platform parent successor turn queue resume_reason "
        "interruptions messages turns usage last_failure root owner preferences grants prompted context_tokens "
        "compressing compressing_focus compression_failures compression_failed_at hidden compression_problem "
        "blocked_by blocked_reason taken_up_at notice place company end_cause compressing_cause compressing_since "
        "compression_failed_tokens resume_cause interruption instructed handed handover posted"
        " unreviewed_turns unreviewed_calls children assignment delegated goal"
    ),
    "Turn": "id accepted_at attempt options steer replies calls usage merged place written role by name several"
    " chain said results handing handing_message handing_model automatic",
    "Call": "id name summary state parallel effect gate problem question choices routed asked_in approved_by whole"
    " whole_file cut judgement delegates children within inner",
    "CallJudgement": "verdict model confidence reason",
    "Gate": "verdict reason rules once findings subjects context",
    "Preferences": "title model personality reasoning busy yolo show_reasoning",
    "Usage": "prompt_tokens completion_tokens cached_tokens cost_usd",
    "Tally": "day model platform usage turns guest",
    "Failure": "kind message retry_after_s address cause status stop by",
    "Source": "platform user automatic place company role name",
    "Company": "kind chat person shared",
    "Seen": "key session turn fingerprint at",
    "DeadLetter": "id session turn messages source options problem at undelivered",
    "ProcessRecord": (
        "id root session key platform command cwd started_at notify watch pty pid active_at watched_bytes ended_at "
        "exit_code signal reason detail output_bytes told role"
    ),
    "Assignment": "purpose key parent turn tools model max_steps max_tokens max_usd memory asks asked_in depth",
    "ChildLink": "session purpose",
    "Place": "platform chat thread message",
    "Handover": "key place reason origin origin_key replaced",
    "OutboxMessage": (
        "id kind place text at session turn choices call final order sent sending tries problem repeated files"
        " superseded end amends refusals"
    ),
    "Change": "subject number at author action operation payload by session turn",
    "DeliveredMessage": "id kind place at sent_at messages session turn repeated",
    "Job": (
        "id name schedule source prompt zone deliver tools model skills workdir script no_agent context_from "
        "max_steps max_tokens max_usd repeat missed grace_s jitter_s retries approvals paused origin_key "
        "created_at version next_at last_at running runs taken last_state last_problem last_run_at failures "
        "retry_at attempt ended_at failure_told retry_of"
    ),
    "JobRun": (
        "job number occurrence at began_at cause state session script script_output ended_at output problem "
        "detail missed until delivered attempt"
    ),
    "Schedule": ("kind text at every_s expression"),
}
CODES = {  # a value that is stored once must stay readable; the empty one means that none was stored
    "EndCause": ",asked,compression,taken_back,reset,done,expired",
    "InterruptionCause": ",crash,actor_crash,shutdown,restart,suspended",
    "HoldCause": ",configured,crashes",
    "SuspendCause": ",asked,interruptions,imported",
    "StopCause": ",asked,new_message,session_ended,session_deleted",
    "Purpose": "review,delegate,goal,background,webhook,boot,job",
    "ScheduleKind": "once,every,cron",
    "MissedPolicy": "late,skip,all",
    "ApprovalPolicy": "deny,ask",
    "JobRunState": "working,done,quiet,failed,missed,overlapped",
    "RunCause": "due,late,manual,retry",
    "ScriptState": ",started,ended",
    "RunProblem": ",model,script,interrupted,setup,blocked",
    "JudgeVerdict": "approve,ask,suspicious,unreadable,failed",
    "MessageOrigin": ",person,process,note",
    "ChangeAuthor": "person,agent,review,file,system",
    "ChangeAction": (
        "add,replace,remove,batch,edit,revert,propose,approve,reject,create,patch,delete,write_file,remove_file,"
        "install,update,archive,restore,damaged"
    ),
}


@pytest.fixture(autouse=True, scope="module")
def known_arguments() -> None:
    """What `from_type` looks at is there when a kind has been used once."""
    for kind in STORED:
        with suppress(TypeError):
            kind()


def packed(value: object) -> bytes:
    try:
        return pack(value)
    except (OverflowError, TypeError):  # an integer that is too large
        assume(False)
        raise


@pytest.mark.parametrize("kind", KINDS)
@FEW
@given(data=st.data())
def test_every_record_comes_back_as_it_went(kind: type[Record], data: st.DataObject) -> None:
    record = data.draw(st.from_type(kind))
    assert repr(open_record(packed(("s", 7, kind.__name__, record)))) == repr(("s", 7, record))


@pytest.mark.parametrize(
    "kind", [Session, Seen, DeadLetter, Tally, ProcessRecord, OutboxMessage, DeliveredMessage, Change, Job, JobRun]
)
@FEW
@given(data=st.data())
def test_every_stored_value_comes_back_as_it_went(kind: type, data: st.DataObject) -> None:
    value = data.draw(st.from_type(kind))
    assert repr(open_as(kind, b"key", seal(b"key", packed(value)))) == repr(value)


@pytest.mark.parametrize(
    "kind",
    [
        *(*KINDS, BadRecord, Session, Turn, Call, Gate, Preferences, Usage, Failure, Source, Seen, DeadLetter, Tally),
        *(ProcessRecord, Place, Handover, OutboxMessage, DeliveredMessage, Change, Job, JobRun, Schedule),
    ],
    ids=lambda kind: kind.__name__,
)
def test_the_order_of_fields_is_kept_and_new_ones_go_last(kind: type) -> None:
    names = [field.name for field in fields(kind)]
    known = ORDER[kind.__name__].split()
    assert names[: len(known)] == known, "stored values would be read into the wrong fields"
    assert names == known, "a new field: it needs a default, and goes to the end of its line above"


def test_enums_and_nested_values_get_their_types_back() -> None:
    failure = Failure(kind=FailureKind.TIMEOUT, message="too slow")
    session = build(Session, unpack(pack(head("a", 1))))
    assert type(session.phase) is Phase
    assert type(session.usage) is Usage
    assert type(build(Failure, unpack(pack(failure))).kind) is FailureKind


def test_missing_fields_take_their_defaults() -> None:
    assert build(Source, ["api"]) == Source(platform="api")
    assert build(Turn, ["t", NOW]) == Turn(id=TurnId("t"), accepted_at=NOW)


def test_defaults_at_the_end_of_a_long_list_are_left_out() -> None:
    session = head("a", 1)
    assert len(values_of(session)) < len(fields(Session))
    assert build(Session, unpack(pack(session))) == session


def test_a_session_that_was_stored_whole_is_read_as_before() -> None:
    session = head("a", 1)
    whole = [getattr(session, field.name) for field in fields(Session)]
    assert build(Session, unpack(pack(whole))) == session


@pytest.mark.parametrize(
    "session",
    [
        replace(head("a", 1), notice=""),  # not None, though as false
        replace(head("a", 1), compression_failures=1),
        replace(head("a", 1), prompted=True),
        replace(head("a", 1), messages=1),
        replace(head("a", 1), usage=Usage()),  # equal, but not the default itself
    ],
)
def test_what_is_set_is_kept_with_all_that_stands_before_it(session: Session) -> None:
    assert build(Session, unpack(pack(session))) == session


@pytest.mark.parametrize(
    "values", [[], [1.0], [1.0, "t", 1, "a note", "what is this?"], ["a", ["b"], {}, 1, 2], 7, None]
)
def test_what_does_not_fit_is_a_bad_record_and_no_exception(values: object) -> None:
    session, seq, record = open_record(pack(("s", 3, "TurnStarted", values)))
    assert (session, seq) == ("s", 3)
    assert isinstance(record, BadRecord)


def test_an_unknown_kind_is_a_bad_record() -> None:
    _, _, record = open_record(pack(("s", 3, "FromTheFuture", [])))
    assert isinstance(record, BadRecord)
    assert "FromTheFuture" in record.problem


@pytest.mark.parametrize("payload", [b"", b"\xc1", b"\x93\x01", pack(7), pack(("s", 1)), b"\xff" * 9])
def test_what_is_no_record_at_all_is_unreadable(payload: bytes) -> None:
    with pytest.raises(UnreadableError):
        open_record(payload)


def test_an_unknown_enum_value_is_unreadable() -> None:
    with pytest.raises(UnreadableError):
        build(Failure, ["a new kind of failure", "text"])


def test_a_value_in_the_wrong_place_is_damaged() -> None:
    value = seal(b"key", b"payload")
    assert unseal(b"key", value) == b"payload"
    with pytest.raises(DamagedError):
        unseal(b"other key", value)


def test_a_newer_format_is_unreadable() -> None:
    with pytest.raises(UnreadableError):
        unseal(b"key", b"\x02" + seal(b"key", b"payload")[1:])


@FEW
@given(data=st.data(), payload=st.binary(max_size=40))
def test_any_flipped_bit_and_any_cut_is_noticed(data: st.DataObject, payload: bytes) -> None:
    value = seal(b"key", payload)
    position = data.draw(st.integers(0, len(value) - 1))
    flipped = bytearray(value)
    flipped[position] ^= 1 << data.draw(st.integers(0, 7))
    for garbled in (bytes(flipped), value[:position]):
        with pytest.raises((DamagedError, UnreadableError)):
            unseal(b"key", garbled)


@pytest.mark.parametrize("bad", ["\ud800", 2**64, object(), {"a": {1}}])
def test_a_packer_goes_on_after_what_it_cannot_pack(bad: object) -> None:
    packing = packer()
    with pytest.raises((TypeError, ValueError, OverflowError)):
        packing(("some text before", bad))
    assert unpack(packing(("good", 1))) == ("good", 1)


def test_a_record_is_small() -> None:
    record = TurnStarted(at=NOW, turn=TurnId("t"), attempt=1)
    assert len(pack(("s", 7, "TurnStarted", record))) < 40
    assert len(pack(message("hello"))) < 100


def test_values_that_older_versions_stored_get_unknown_causes() -> None:
    _, _, cut = open_record(pack(("s", 3, "TurnInterrupted", [1.0, "t", "the daemon stopped without warning"])))
    assert isinstance(cut, TurnInterrupted)
    assert (cut.cause, cut.hold) == (InterruptionCause.UNKNOWN, HoldCause.NONE)
    _, _, mark = open_record(pack(("s", 3, "MarkedResumePending", [1.0, "restart: new version", "so far"])))
    assert isinstance(mark, MarkedResumePending)
    assert (mark.cause, mark.by, mark.written) == (InterruptionCause.UNKNOWN, "", "so far")
    failure = build(Failure, ["cancelled", "stopped: /stop by telegram:7", None, "", "", 0])
    assert stop_cause(failure) is StopCause.ASKED
    gate = build(Gate, ["ask", "`rm x` deletes", ["rm"], False, ["`rm x` deletes"]])
    assert gate.subjects == ()


@pytest.mark.parametrize(
    "kind",
    [
        *(EndCause, InterruptionCause, HoldCause, SuspendCause, StopCause, MessageOrigin),
        ChangeAuthor,
        ChangeAction,
        JudgeVerdict,
    ],
)
def test_stored_codes_keep_their_values(kind: type[StrEnum]) -> None:
    assert {each.value for each in kind} == set(CODES[kind.__name__].split(","))
