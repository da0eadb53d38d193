"""Ledger of subagents: it watches what a simulated disk stores, and says which promises about them were broken."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator

from hermes.domain.cause.end_cause import goes_on
from hermes.domain.child.child import PREFIX, Purpose, first_turn
from hermes.domain.ids import SessionId
from hermes.domain.operations import Append, Enqueue, Operation, PutFact
from hermes.domain.records import (
    ChildStarted,
    MessageReceived,
    Record,
    ToolFinished,
    ToolStarted,
    TurnFailed,
    TurnFinished,
)
from hermes.domain.session.state import Phase, Session
from hermes.ports.storage import Transaction
from hermes.services.children.delegation_purpose import DelegationSettings
from tests.simulation.disk import Disk

SUBAGENTS = (Purpose.DELEGATE, Purpose.BACKGROUND)
Watch = Callable[[Transaction], Callable[[], None]]


class DelegationLedger:
    def __init__(self, disk: Disk, settings: DelegationSettings, clock: Callable[[], float]) -> None:
        self.results = 0
        self.children: dict[str, ChildStarted] = {}  # by key
        self._disk = disk
        self._settings = settings
        self._clock = clock
        self.ended_at: dict[str, float] = {}  # by child
        self._others: Watch = disk.witness
        self._sessions: Counter[str] = Counter()  # that received the task, by key
        self._answers: dict[str, str] = {}  # by key
        self._opened: Counter[str] = Counter()
        self._closed: Counter[str] = Counter()
        self._reports: Counter[str] = Counter()  # by key
        self._owed: set[str] = set()  # background work whose conversation was open when it ended
        self._began: dict[str, str] = {}  # calls that delegate, and their turns
        self._settled: set[str] = set()  # turns
        self._finished: Counter[str] = Counter()  # calls
        self._parents: dict[str, SessionId] = {}  # by key
        self._wrong: list[str] = []
        disk.witness = self._watch

    def _watch(self, transaction: Transaction) -> Callable[[], None]:
        stored = self._others(transaction)

        def then() -> None:
            stored()
            for operation in transaction:
                self._take(operation)

        return then

    def _take(self, operation: Operation) -> None:
        match operation:
            case Append():
                if (assignment := operation.head.assignment) is not None:
                    self._first_turn(operation, assignment.key)
                started = {each.call for each in operation.records if isinstance(each, ChildStarted) and each.call}
                for record in operation.records:
                    self._record(operation.session, record, started)
            case PutFact(name=name, value=value) if name.startswith(PREFIX):
                key = name.removeprefix(PREFIX)
                if value is not None:
                    self._opened[key] += 1
                else:
                    self._close(key)
            case Enqueue(outgoing=outgoing) if outgoing.id.startswith(PREFIX):
                self._reports[outgoing.id.removeprefix(PREFIX)] += 1

    def _first_turn(self, step: Append, key: str) -> None:
        """Note the start of a child, and its answer, also where it went on after a compression."""
        for record in step.records:
            match record:
                case MessageReceived(turn=turn) if turn == first_turn(key):
                    self._sessions[key] += 1
                case TurnFinished(turn=turn, message=message) if turn == first_turn(key):
                    self._answers[key] = json.loads(message)["content"] or ""

    def _record(self, session: SessionId, record: Record, delegating: set[str]) -> None:
        match record:
            case ChildStarted() as started if started.purpose in SUBAGENTS:
                if started.key in self.children:
                    self._wrong.append(f"{started.key} was started twice")
                self.children[started.key] = started
                self._parents[started.key] = session
            case ToolStarted(call=call, turn=turn) if call in delegating:
                self._began[call] = turn
            case ToolFinished() as finished if finished.call in self._began:
                self._finished[finished.call] += 1
                self._check_result(finished)
            case MessageReceived(inbound=inbound) if str(inbound).startswith("report:"):
                self._reports[str(inbound).removeprefix("report:")] += 1
            case TurnFinished(turn=turn) | TurnFailed(turn=turn):
                self._settled.add(turn)

    def _close(self, key: str) -> None:
        if not self.is_open(key):  # it ended when the child was deleted
            return
        self._closed[key] += 1
        self.ended_at[self.children[key].child] = self._clock()
        if self.children[key].purpose is Purpose.BACKGROUND and key in self._answers:
            parent = self.parent_of(key)
            if parent is not None and parent.phase is not Phase.ENDED:
                self._owed.add(key)

    def _check_result(self, finished: ToolFinished) -> None:
        """Compare a result with what the subagents said, at the moment when it is stored."""
        content = json.loads(finished.message)["content"]
        if not content.startswith("results "):
            if content.startswith("failed "):
                self._wrong.append(f"the results of {finished.call} are lost: {content}")
            return
        told = json.loads(content.removeprefix("results "))
        started = {each.child: each for each in self.children.values() if each.call == finished.call}
        if list(told) != list(started):
            self._wrong.append(f"{finished.call} has the results of {list(told)}, it started {list(started)}")
        for child, text in told.items():
            answer = self._answers.get(started[child].key, "") if child in started else ""
            if text != answer:
                self._wrong.append(f"{finished.call} got {text!r} of {child}, which said {answer!r}")
            self.results += bool(text)

    # ------------------------------------------------------------ who waits for whom

    def parent_of(self, key: str) -> Session | None:
        """Return the conversation that started the child, where it is now."""
        rows = {row.id: row for row in self._disk.sessions()}
        row = rows.get(self._parents[key])
        while row is not None and goes_on(row) and row.successor in rows:
            row = rows[row.successor]
        return row

    def is_open(self, key: str) -> bool:
        return self._opened[key] > self._closed[key]

    def orphans(self) -> Iterator[str]:
        """Return the children that work although nobody waits for them."""
        phases = {row.id: row.phase for row in self._disk.sessions()}
        for key, started in self.children.items():
            phase = phases.get(started.child, Phase.ENDED)
            if phase not in (Phase.ENDED, Phase.SUSPENDED) and self.is_open(key) and not self._is_wanted(key):
                yield key

    def _is_wanted(self, key: str) -> bool:
        parent, child = self.parent_of(key), self.children[key]
        if parent is None:
            return False
        if parent.phase is Phase.ENDED:
            return self._settings.detach
        calls = parent.turn.calls if parent.turn is not None else ()
        return child.purpose is Purpose.BACKGROUND or any(child.child in call.children for call in calls)

    # ------------------------------------------------------------ in the end

    def violations(self) -> Iterator[str]:
        yield from self._wrong
        rows = {row.id: row for row in self._disk.sessions()}
        for key, started in self.children.items():
            if (self._opened[key], self._closed[key]) != (1, 1):
                yield f"the duty {key} was stored {self._opened[key]} times and ended {self._closed[key]} times"
            if self._sessions[key] > 1:
                yield f"{key} has {self._sessions[key]} sessions"
            if started.child in rows and rows[started.child].phase is not Phase.ENDED:
                yield f"{started.child} is {rows[started.child].phase}"
            if self._reports[key] > 1 or (key in self._owed and not self._reports[key]):
                yield f"{key} was reported {self._reports[key]} times"
        for key in self._sessions.keys() - self.children.keys():
            yield f"the session for {key} has no parent that started it"
        for call, turn in self._began.items():
            if self._finished[call] > 1 or (not self._finished[call] and turn not in self._settled):
                yield f"{call} got {self._finished[call]} results"
