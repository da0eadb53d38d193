"""What the disk of a simulated machine says in the end, as the judge reads it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from hermes.domain.access.grants import PREFIX, rules_in
from hermes.domain.records import (
    Answered,
    ChildStarted,
    ContextCarried,
    Ended,
    LogEntry,
    MessageReceived,
    ModelReplied,
    Suspended,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
    TurnInterrupted,
)
from hermes.domain.records import Merged as MergedRecord
from hermes.domain.session.fold.state_fold import replay
from hermes.domain.session.recovery import SUSPEND_AFTER
from hermes.domain.session.state import Session
from hermes.domain.session.turn_role import role_of_turn
from hermes.domain.turn.tool_call import Call, JudgeVerdict, Verdict
from tests.simulation.disk import Disk
from tests.simulation.minds import heard, transcript_of
from tests.support.judge import (
    Accepted,
    Happening,
    Looked,
    Merged,
    Permitted,
    ReplyExpected,
    Retried,
    Sample,
    Settled,
    Stored,
    Told,
)


def survey(disk: Disk) -> Iterator[Happening]:
    for row in disk.sessions():
        yield from survey_session(disk, row)
    yield from _outgoing(disk)


def survey_session(disk: Disk, row: Session) -> Iterator[Happening]:
    entries = disk.log(row.id)
    yield Stored(row=row, fold=replay(row.id, entries))
    yield Looked(session=row.id, inbounds=heard(transcript_of(disk, row.id).messages))
    yield Sample(what=f"interruptions in a row of {row.id}", value=_in_a_row(entries), limit=SUSPEND_AFTER)
    yield from _permitted(row, entries, rules_in(disk.facts(PREFIX)))
    for entry in entries:
        match entry.record:
            case MessageReceived() as received:
                yield from _received(received, row)
            case MergedRecord() as merged:
                yield Merged(turn=merged.turn, into=merged.into)
            case TurnFinished() as finished:
                yield Settled(turn=finished.turn, text=json.loads(finished.message)["content"] or "")
            case TurnFailed() as failed:
                yield Settled(turn=failed.turn, failure=failed.failure.kind)
            case _:
                pass


def _permitted(row: Session, entries: list[LogEntry], for_good: frozenset[str]) -> Iterator[Happening]:
    """What was approved, and what ran of the calls that needed it."""
    gated: dict[str, Call] = {}
    approvers: dict[str, str] = {}
    grants = set(for_good)
    for place, entry in enumerate(entries):
        match entry.record:
            case ModelReplied(calls=calls):
                gated, approvers = _gated(calls), {}
            case ContextCarried() as carried:
                grants.update(carried.grants)
                gated = _gated(carried.turn.calls if carried.turn is not None else ())
            case Answered(call=call, answer=answer) as answered if call in gated and answer != "deny":
                approvers[call] = answered.role or ""
                yield Permitted(call=call, role="", approver=answered.role or "")
                if answer == "session":
                    grants.update(gated[call].gate.rules)
            case ToolStarted(call=call) if call in gated:
                before = replay(row.id, entries[:place])
                assert before is not None
                covered = bool(gated[call].gate.rules) and grants.issuperset(gated[call].gate.rules)
                role = role_of_turn(before)
                judgement = gated[call].judgement
                by_model = judgement is not None and judgement.verdict is JudgeVerdict.APPROVE and role.approves
                approver = approvers.get(call, role if by_model else "")
                yield Permitted(call=call, role=role, approver=approver, granted=covered)


def _gated(calls: Iterable[Call]) -> dict[str, Call]:
    return {call.id: call for call in calls if call.gate.verdict is Verdict.ASK}


def _in_a_row(entries: Iterable[LogEntry]) -> int:
    """The most interruptions without a finished turn in between, or anything else that makes them count anew."""
    most = now = 0
    waits: set[str] = set()  # calls that wait for subagents: an interruption costs them nothing
    for entry in entries:
        if isinstance(entry.record, ChildStarted) and entry.record.call:
            waits.add(entry.record.call)
        elif isinstance(entry.record, ToolFinished):
            waits.discard(entry.record.call)
        elif isinstance(entry.record, TurnInterrupted):
            now += not waits
        elif isinstance(entry.record, TurnFinished | Suspended | Ended):
            now = 0
        most = max(most, now)
    return most


def _received(received: MessageReceived, row: Session) -> Iterator[Happening]:
    if str(received.inbound).startswith("process:"):  # else a child session began, or reports
        _, process, _ = str(received.inbound).split(":")
        yield Told(process=process)
    for inbound in heard(received.messages):
        if received.inbound is None:
            yield Retried(inbound=inbound, turn=received.turn)
        else:
            yield Accepted(inbound=inbound, turn=received.turn, session=row.id)


def _outgoing(disk: Disk) -> Iterator[Happening]:
    records = [entry.record for row in disk.sessions() for entry in disk.log(row.id)]
    chats = {
        each.turn: each.source.place.chat
        for each in records
        if isinstance(each, MessageReceived) and each.source.place is not None
    }
    for record in records:
        if isinstance(record, TurnFinished) and record.turn in chats:
            yield ReplyExpected(to=chats[record.turn], turn=record.turn)
