"""Whatever happens to a session, in whatever order: what is promised of it holds after every step."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from hermes.domain.events import TurnAnswered, TurnGaveUp
from hermes.domain.ids import Seq, SessionId, TurnId
from hermes.domain.read.explain import explain
from hermes.domain.read.reader import Reader
from hermes.domain.read.transcript_page import stored_messages
from hermes.domain.read.turn_log import find_end, records_of
from hermes.domain.records import LogEntry, Merged, ToolFinished, ToolStarted, TurnFailed, TurnFinished
from hermes.domain.session.fold.state_fold import replay
from hermes.domain.session.machine import open_work
from hermes.domain.session.protocol import (
    Accept,
    AnnounceStop,
    Compress,
    EndSession,
    Event,
    NoteBlocked,
    Recover,
    ResetSession,
    Resume,
    SetPreference,
    Step,
    StopTurn,
    Summarised,
    Suspend,
    ToolCallWork,
    TurnLimits,
)
from hermes.domain.session.request import TooFarBackError, waiting_of
from hermes.domain.session.state import Phase, Session, is_pending
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.tool_call import Call, CallState
from hermes.domain.turn.turn_failure import FailureKind
from tests.actors.talk import SessionTalk, asks, does, events, needs_leave, reads, said, user

LIMITS = TurnLimits(max_queue=3, max_replies=3, max_parallel=2)
CALLS = st.lists(st.sampled_from(["does", "reads", "leave", "asks", "bad"]), min_size=1, max_size=3)
FAILURES = st.sampled_from([FailureKind.TIMEOUT, FailureKind.CONTEXT_OVERFLOW])
AT_WORK = (Phase.RUNNING, Phase.WAITING)


class SessionLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.talk = SessionTalk(limits=LIMITS)
        self.talks = [self.talk]  # oldest first; the last one is where the conversation goes on
        self.accepted: dict[TurnId, SessionId] = {}
        self.told: Counter[str] = Counter()
        self.reports: list[Event] = []  # of models and tools, which may come again, and late
        self.begun: set[str] = set()  # calls with effects that ever ran
        self.running: set[str] = set()
        self.announced = False  # a stop, in this life
        self.number = 0

    # ------------------------------------------------------------ what can happen

    def do(self, event: Event) -> Step:
        self.talk.now += 100.0
        taken = self.talk.do(event)
        self.see(taken)
        return taken

    def see(self, taken: Step) -> None:
        for effect in taken.effects:
            if isinstance(effect, Accept):
                assert effect.turn not in self.accepted
                self.accepted[effect.turn] = self.talk.session.id
        for event in events(taken):
            if isinstance(event, TurnAnswered | TurnGaveUp) and not _is_put_off(event):
                self.told[event.turn] += 1
        going_on = {task.call for task in open_work(self.talk.session, LIMITS) if isinstance(task, ToolCallWork)}
        ended = {record.call for record in taken.records if isinstance(record, ToolFinished)}
        assert going_on | ended >= {record.call for record in taken.records if isinstance(record, ToolStarted)}
        self.look_at_work()

    def look_at_work(self) -> None:
        """A call with effects begins once, and never after it was going on in another life."""
        now = {
            task.call
            for task in open_work(self.talk.session, LIMITS)
            if isinstance(task, ToolCallWork) and not task.call.startswith("reads")
        }
        assert not (now - self.running) & self.begun
        self.begun |= now
        self.running = now

    def fresh(self, kind: str = "") -> str:
        self.number += 1
        return f"{kind}{self.number}"

    def made(self, kind: str) -> Call:
        name = self.fresh(kind)
        makers = {"does": does, "reads": reads, "leave": needs_leave, "asks": asks}
        return makers[kind](name) if kind in makers else does(name, problem="no such tool")

    @rule(busy=st.sampled_from(["", "queue", "steer", "interrupt"]))
    def say(self, busy: str) -> None:
        self.do(said(self.fresh("m"), busy=busy))

    @rule(word=st.sampled_from(["yes", "no", "always"]))
    def say_a_plain_word(self, word: str) -> None:
        self.do(said(word, turn=self.fresh("w")))

    @precondition(lambda self: self.talk.work()[:1] == ["think"])
    @rule(kinds=CALLS)
    def ask_for_tools(self, kinds: list[str]) -> None:
        self.report(self.talk.model_says("", tuple(map(self.made, kinds))))

    @precondition(lambda self: self.talk.work()[:1] and self.talk.work()[0].startswith("think"))
    @rule(full=st.booleans())
    def finish(self, full: bool) -> None:
        self.report(replace(self.talk.model_says(self.fresh("A"), ()), context_full=full))

    @precondition(lambda self: self.talk.work()[:1] and self.talk.work()[0].startswith("think"))
    @rule(kind=FAILURES)
    def fail(self, kind: FailureKind) -> None:
        self.report(self.talk.model_fails(kind))

    @precondition(lambda self: any(call.state is CallState.STARTED for call in self.calls()))
    @rule(data=st.data())
    def return_from_a_call(self, data: st.DataObject) -> None:
        started = [call.id for call in self.calls() if call.state is CallState.STARTED]
        self.report(self.talk.tool_returns(data.draw(st.sampled_from(started))))

    def report(self, event: Event) -> None:
        self.reports.append(event)
        self.do(event)

    @precondition(lambda self: self.reports)
    @rule(data=st.data())
    def report_again(self, data: st.DataObject) -> None:
        before = self.talk.session
        self.do(data.draw(st.sampled_from(self.reports)))
        assert self.talk.session == before

    @precondition(lambda self: any(call.state is CallState.ASKED for call in self.calls()))
    @rule(answer=st.sampled_from(["once", "session", "always", "deny", "blue", ""]))
    def answer(self, answer: str) -> None:
        before = len(self.talk.log)
        self.talk.tell(answer)
        self.see(self.talk.last)
        assert self.talk.phase == Phase.RUNNING or len(self.talk.log) == before or self.calls()

    @rule(data=st.data())
    def stop(self, data: st.DataObject) -> None:
        turn = data.draw(st.sampled_from([None, *self.accepted]))
        self.do(StopTurn(reason="stop", turn=turn))

    @precondition(lambda self: self.number % 4 == 0)
    @rule(wish=st.sampled_from([("yolo", False), ("yolo", True), ("busy", "steer"), ("personality", "pirate")]))
    def prefer(self, wish: tuple[str, str | bool]) -> None:
        self.do(SetPreference(name=wish[0], value=wish[1], reason="asked"))

    @precondition(lambda self: self.talk.phase == Phase.IDLE)
    @rule(turns=st.integers(1, 2), again=st.booleans())
    def undo(self, turns: int, again: bool) -> None:
        shown = self.talk.transcript().messages
        with suppress(TooFarBackError):
            taken = self.talk.undo(turns, self.fresh("m") if again else "")
            self.see(taken)
            kept = self.talk.transcript().messages
            assert not taken.records or again or kept == shown[: len(kept)]

    @precondition(lambda self: self.talk.phase == Phase.IDLE)
    @rule()
    def compress(self) -> None:
        self.do(Compress(reason="asked"))

    @precondition(lambda self: self.talk.session.compressing)
    @rule()
    def summarise(self) -> None:
        talk, transcript = self.talk, self.talk.transcript()
        open_before = [turn.id for turn in (talk.session.turn, *talk.session.queue) if turn is not None]
        self.do(
            Summarised(
                child=SessionId(self.fresh("s")),
                messages=(user("[Summary of the earlier part]"), *_tail(transcript.messages)),
                waiting=waiting_of(talk.session, transcript),
                reason="full",
            )
        )
        assert talk.child is not None
        self.talk = SessionTalk(talk.child.session, talk.child.records, LIMITS)
        self.talk.now = talk.now
        self.talks.append(self.talk)
        self.reports = []  # whoever makes them made them for the parent
        assert open_before == [t.id for t in (self.talk.session.turn, *self.talk.session.queue) if t is not None]
        if self.talk.session.turn is None and not self.talk.session.resume_reason:
            self.do(Recover())  # as its actor does when it begins
        self.look_at_work()

    @precondition(lambda self: self.talk.session.compressing)
    @rule()
    def fail_to_summarise(self) -> None:
        self.talk.summary_fails()
        self.see(self.talk.last)

    @rule()
    def crash(self) -> None:
        self.running = set()
        self.announced = False
        self.talk.crash()
        self.see(self.talk.last)

    @precondition(lambda self: self.number % 3 == 0)
    @rule()
    def announce_a_stop(self) -> None:
        self.announced = True
        self.do(AnnounceStop(reason="restart"))

    @precondition(lambda self: self.number % 2 == 0 or self.calls())
    @rule()
    def suspend(self) -> None:
        self.do(Suspend(reason="operator"))

    @precondition(lambda self: self.talk.phase in (Phase.SUSPENDED, Phase.ENDED))
    @rule()
    def resume(self) -> None:
        self.do(Resume(reason="operator"))

    @precondition(lambda self: self.number % 7 == 0)
    @rule()
    def end(self) -> None:
        self.do(EndSession(reason="done"))

    @rule(known=st.booleans(), notice=st.sampled_from(["", "it was reset"]))
    def reset(self, known: bool, notice: str) -> None:
        """Never in a turn, and not when somebody has written since it was judged."""
        before = self.talk.session
        active_at = before.active_at if known else before.active_at - 1
        self.do(ResetSession(reason="idle", active_at=active_at, notice=notice))
        rested = known and before.phase == Phase.IDLE and not is_pending(before)
        assert (self.talk.session != before) == rested

    @rule(by=st.sampled_from([("p1",), ("p1", "p2")]))
    def note_what_blocks_a_reset(self, by: tuple[str, ...]) -> None:
        self.do(NoteBlocked(by=by, reason="it works", active_at=self.talk.session.active_at))
        assert self.do(NoteBlocked(by=by, reason="still", active_at=self.talk.session.active_at)).records == ()

    @rule(undo=st.integers(0, 1))
    def branch(self, undo: int) -> None:
        with suppress(TooFarBackError):
            branch = self.talk.branch(self.fresh("b"), undo=undo)
            assert _calls_without_result(branch.transcript().messages) == set()
            assert self.talk.last.records == ()

    def calls(self) -> tuple[Call, ...]:
        return self.talk.session.turn.calls if self.talk.session.turn is not None else ()

    # ------------------------------------------------------------ what always holds

    @invariant()
    def the_state_is_what_its_records_say(self) -> None:
        assert replay(self.talk.session.id, self.talk.entries()) == self.talk.session
        assert self.talk.session.next_seq == len(self.talk.log)

    @invariant()
    def the_transcript_is_one_that_a_model_accepts(self) -> None:
        without = _calls_without_result(self.talk.transcript().messages)
        assert without == {call.id for call in self.calls()}

    @invariant()
    def what_was_undone_stays_hidden(self) -> None:
        pages, _ = stored_messages(self.talk.session, self.talk.entries())
        assert [stored.message for stored in pages] == self.talk.transcript().messages

    @invariant()
    def every_accepted_message_is_open_or_merged_or_has_one_end(self) -> None:
        session = self.talk.session
        log = [record for talk in self.talks for record in talk.log]
        ended = Counter(record.turn for record in log if isinstance(record, TurnFinished | TurnFailed))
        merged = {record.turn: record.into for record in log if isinstance(record, Merged)}
        open_ = Counter(turn.id for turn in (session.turn, *session.queue) if turn is not None)
        assert set(ended) | set(open_) | set(merged) == set(self.accepted)
        for turn in self.accepted:
            assert ended[turn] + open_[turn] + (turn in merged) == 1
            assert self.told[turn] == (ended[merged.get(turn, turn)])

    @invariant()
    def the_queue_is_bounded(self) -> None:
        assert len(self.talk.session.queue) <= LIMITS.max_queue

    @invariant()
    def phase_and_work_fit_each_other(self) -> None:
        session, work = self.talk.session, self.talk.work()
        held = bool(session.compressing or session.resume_reason)
        states = {call.state for call in self.calls()}
        assert session.turn is None or session.turn.replies <= LIMITS.max_replies
        match session.phase:
            case Phase.IDLE:
                assert session.turn is None
                assert work == (["summary"] if session.compressing else [])
                assert held or not session.queue
            case Phase.RUNNING:
                assert session.turn is not None
                assert work
                assert CallState.ASKED not in states
            case Phase.WAITING:
                assert work == []
                assert CallState.ASKED in states
                assert CallState.STARTED not in states
            case Phase.RESUME_PENDING:
                assert session.turn is None
                assert session.queue
                assert held
            case Phase.SUSPENDED:
                assert work == []
            case Phase.ENDED:
                assert work == []
                assert not session.turn
                assert not session.queue
        assert explain(session, 1e9)

    @invariant()
    def a_stop_that_was_announced_holds_nobody_up_after_it(self) -> None:
        assert self.announced or not self.talk.session.resume_reason

    @invariant()
    def pending_means_that_something_is_open(self) -> None:
        session = self.talk.session
        closed = session.phase in (Phase.SUSPENDED, Phase.ENDED)
        something = bool(session.turn or session.queue or session.compressing)
        assert is_pending(session) == (something and not closed)

    @invariant()
    def calls_with_effects_are_recorded_as_begun_once(self) -> None:
        begun = Counter(record.call for talk in self.talks for record in talk.log if isinstance(record, ToolStarted))
        assert all(count == 1 for call, count in begun.items() if not call.startswith("reads"))

    def teardown(self) -> None:
        """The log alone tells how every turn ended, wherever it went on."""
        reader = cast("Reader", _Logs(self.talks))
        for turn, session in self.accepted.items():
            _, end, _ = find_end(reader, session, turn)
            assert (end is not None) == (self.told[turn] == 1)
            records = records_of(reader, session, turn)
            assert records
            assert (records[-1].record == end) == (end is not None)


class _Logs:
    """The logs of a lineage, as a store would hold them."""

    def __init__(self, talks: Iterable[SessionTalk]) -> None:
        self._talks = {talk.session.id: talk for talk in talks}

    def head(self, session: SessionId) -> Session:
        return self._talks[session].session

    def log(self, session: SessionId, first: Seq = Seq(0), limit: int | None = None) -> list[LogEntry]:
        entries = self._talks[session].entries()[first:]
        return entries if limit is None else entries[:limit]


def _is_put_off(event: TurnAnswered | TurnGaveUp) -> bool:
    return isinstance(event, TurnGaveUp) and event.failure.kind is FailureKind.SUSPENDED


def _tail(messages: list[EncodedMessage]) -> list[EncodedMessage]:
    """From the last thing a person said."""
    said_at = [n for n, message in enumerate(messages) if json.loads(message)["role"] == "user"]
    return messages[said_at[-1] :] if said_at else []


def _calls_without_result(messages: list[EncodedMessage]) -> set[str]:
    """Of the last answer; all the others have theirs, each one, before anything else is said."""
    waiting: set[str] = set()
    for message in messages:
        fields: dict[str, Any] = json.loads(message)
        if fields["role"] == "tool":
            waiting.remove(fields["tool_call_id"])
            continue
        assert not waiting
        waiting = {call["id"] for call in fields.get("tool_calls", ())}
    return waiting


TestSessionLife = SessionLife.TestCase
TestSessionLife.settings = settings(max_examples=60, stateful_step_count=50, deadline=None)
