"""Stand-ins for what adapters talk to: a hub, an operator's desk, a front desk in memory with a toy agent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from hermes.domain.access.role import Role
from hermes.domain.child.child import ChildEnd, Purpose
from hermes.domain.errors import AlreadySeenError, BadInputError, HermesError, UnknownSessionError
from hermes.domain.events import (
    Event,
    Notice,
    PhaseChanged,
    TextDelta,
    TurnAccepted,
    TurnAnswered,
    TurnBegan,
    TurnGaveUp,
    TurnOutcome,
)
from hermes.domain.ids import InboundKey, Seq, SessionId, SessionKey, TurnId
from hermes.domain.job.job import JobRunState
from hermes.domain.operations import Tally
from hermes.domain.outbox_message import DeadLetter
from hermes.domain.process.process import Chunk
from hermes.domain.process.process_record import ProcessView
from hermes.domain.read.live import LiveQuery, LiveSession
from hermes.domain.read.reader import Activity, StoreStats
from hermes.domain.read.trace import TraceLine
from hermes.domain.read.views import ActorView, JournalEntry, JournalPage, SessionView, StoredMessage, TurnRecord
from hermes.domain.session.protocol import HandOver, NotePost
from hermes.domain.session.state import Phase, Session, Turn, is_pending
from hermes.domain.source import Place, Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Receipt, Seen, Submission
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.turn.usage import Usage
from hermes.ports.metrics import (
    LAG_BOUNDS_S,
    TURN_BOUNDS_S,
    ChildFigures,
    DaemonFigures,
    Distribution,
    EventFigures,
    JobFigures,
    LiveSample,
    TurnFigures,
)

NOW = 1_800_000_000.0


class FakeFeed:
    def __init__(self, hub: FakeHub, turn: TurnId | None, session: SessionId | None) -> None:
        self.lagged = False
        self._hub = hub
        self._turn = turn
        self._session = session
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()

    def wants(self, event: Event) -> bool:
        turn, session = getattr(event, "turn", None), getattr(event, "session", None)
        return self._turn in (None, turn) and self._session in (None, session)

    def put(self, event: Event) -> None:
        self._events.put_nowait(event)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        event = await self._events.get()
        if event is None:
            raise StopAsyncIteration
        return event

    def waiting(self) -> list[Event]:
        taken: list[Event] = []
        while not self._events.empty() and (event := self._events.get_nowait()) is not None:
            taken.append(event)
        if self.lagged:
            self._events.put_nowait(None)  # the end is there to stay
        return taken

    def close(self) -> None:
        if self in self._hub.feeds:
            self._hub.feeds.remove(self)

    def fall_behind(self) -> None:
        """Lose everything that waits, and all that comes: what the real hub does to a slow reader."""
        self.lagged = True
        self.close()
        while not self._events.empty():
            self._events.get_nowait()
        self._events.put_nowait(None)


class FakeHub:
    def __init__(self) -> None:
        self.feeds: list[FakeFeed] = []

    def subscribe(
        self,
        *,
        turn: TurnId | None = None,
        session: SessionId | None = None,
        late: bool = False,
        text: bool = True,
    ) -> FakeFeed:
        feed = FakeFeed(self, turn, session)
        self.feeds.append(feed)
        return feed

    def publish(self, event: Event) -> None:
        for feed in tuple(self.feeds):
            if feed.wants(event):
                feed.put(event)

    def notices_of(self, _: TurnId) -> list[Notice]:
        return []


class FakeSessions:
    """Says `words` to everybody, one delta each, or fails with `failure`; after `hold()` turns wait for their end."""

    def __init__(self, hub: FakeHub) -> None:
        self.words: Sequence[str] = ("Hello", ", ", "world")
        self.failure: Failure | None = None
        self.refusal: Exception | None = None  # raised instead of accepting
        self.notice = ""
        self.silent = False  # the end of a turn is stored but not published
        self.unheld = asyncio.Event()
        self.unheld.set()
        self.submitted: list[Submission] = []
        self.opens = False  # every message is the first one of its session
        self.stopped: list[tuple[SessionId, str, TurnId | None]] = []
        self.sessions: dict[SessionId, Session] = {}
        self.transcripts: dict[SessionId, list[StoredMessage]] = {}
        self.outcomes: dict[TurnId, TurnOutcome] = {}
        self.places: dict[InboundKey, Seen] = {}  # by keys that lead to turns
        self.seen: dict[InboundKey, tuple[Receipt, bytes]] = {}
        self.replies: dict[InboundKey | None, bytes] = {}
        self.letters: dict[str, DeadLetter] = {}
        self.wishes: list[tuple[str, ...]] = []  # what people asked of sessions besides talking: session, what, how
        self.tallies: list[Tally] = []
        self.turn_records: dict[TurnId, list[TurnRecord]] = {}
        self.journal_entries: list[JournalEntry] = []
        self.traces: dict[str, list[TraceLine]] = {}
        self.facts: dict[str, bytes] = {}
        self.tasks: dict[TurnId, asyncio.Task[None]] = {}
        self._hub = hub

    def hold(self) -> None:
        self.unheld.clear()

    async def close(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)

    # ------------------------------------------------------------ ports.Sessions

    async def submit(self, submission: Submission) -> Receipt:
        await asyncio.sleep(0)
        if self.refusal is not None:
            raise self.refusal
        if submission.inbound in self.seen:
            receipt, fingerprint = self.seen[submission.inbound]
            if fingerprint != submission.fingerprint:
                raise BadInputError("this key was used for another request", code="idempotency_mismatch")
            return replace(receipt, duplicate=True)
        if submission.once:
            for key in submission.locates:
                if key in self.places:
                    raise AlreadySeenError(self.places[key])
        self.submitted.append(submission)
        session = self._session_for(submission)
        receipt = Receipt(
            session=session.id,
            turn=submission.turn,
            notice=self.notice,
            opened=self.opens and bool(submission.opening),
        )
        if submission.inbound is not None:
            self.seen[submission.inbound] = (receipt, submission.fingerprint)
        self._store(session.id, submission.turn, *submission.opening, *submission.messages)
        for key in submission.locates:
            self.places[key] = Seen(key=key, session=session.id, turn=submission.turn, fingerprint=b"", at=NOW)
        self._hub.publish(TurnAccepted(session=session.id, turn=submission.turn, position=0))
        self.tasks[submission.turn] = asyncio.create_task(self._run(session.id, submission.turn))
        return receipt

    async def rewrite(self, session: SessionId, place: Place, message: EncodedMessage, role: Role) -> Session:
        return (await self.view(session)).session

    async def accepted(self, submission: Submission) -> Receipt | None:
        receipt, _ = self.seen.get(submission.inbound, (None, b"")) if submission.inbound else (None, b"")
        return receipt and replace(receipt, duplicate=True)

    async def locate(self, seen: Seen) -> None:
        self.places[seen.key] = seen

    async def located(self, key: InboundKey) -> Seen | None:
        return self.places.get(key)

    async def note_command(self, submission: Submission) -> Receipt | None:
        before = await self.accepted(submission)
        if before is None and submission.inbound is not None:
            noted = Receipt(session=submission.session or SessionId(""), turn=submission.turn)
            self.seen[submission.inbound] = (noted, submission.fingerprint)
        return before

    async def note_reply(self, submission: Submission, reply: bytes) -> None:
        self.replies[submission.inbound] = reply

    async def reply_of(self, command: InboundKey) -> bytes | None:
        return self.replies.get(command)

    async def begin(
        self, source: Source, *, session: SessionId | None = None, key: SessionKey | None = None, title: str = ""
    ) -> Session:
        begun = a_session(session or f"20270115_080000_{len(self.sessions):08x}", owner=source.user)
        return self.sessions.setdefault(begun.id, begun)

    async def bound(self, key: SessionKey) -> SessionId | None:
        return next((session.id for session in reversed(self.sessions.values()) if session.key == key), None)

    async def conversation(self, session: SessionId) -> Session:
        """Every end here is a compression."""
        return (await self.view(session)).session

    async def platform(self, session: SessionId) -> str:
        return (await self.view(session)).session.platform

    async def outcome(self, session: SessionId, turn: TurnId) -> TurnOutcome | None:
        return self.outcomes.get(turn)

    async def view(self, session: SessionId, *, exact: bool = False) -> SessionView:
        found = self._get(session)
        while found.successor and not exact:
            found = self._get(found.successor)
        lineage = [found.id]
        while (parent := self.sessions[lineage[0]].parent) in self.sessions and parent is not None:
            lineage.insert(0, parent)
        why = f"{found.phase}: {found.reason}"
        return SessionView(session=found, why=why, lineage=tuple(lineage), live=True, mailbox=0)

    async def messages(
        self, session: SessionId, after: Seq | None, limit: int, *, exact: bool = False, before: Seq | None = None
    ) -> list[StoredMessage]:
        self._get(session)
        stored = [each for each in self.transcripts[session] if before is None or each.seq < before]
        if after is None:
            return stored[-limit:]
        return [message for message in stored if message.seq > after][:limit]

    async def recent(self, limit: int, after: SessionId | Activity | None = None) -> list[Session]:
        sessions = list(reversed(self.sessions.values()))
        ids = [session.id for session in sessions]
        after = after[1] if isinstance(after, tuple) else after
        first = ids.index(after) + 1 if after in ids else 0
        return sessions[first : first + limit]

    async def stop_turn(
        self, session: SessionId, reason: str, turn: TurnId | None = None, *, by: Place | None = None, who: str = ""
    ) -> Session:
        found = self._get(session)
        self.stopped.append((session, reason, turn))
        running = turn or (found.turn.id if found.turn else None)
        if running and running not in self.outcomes:
            self.tasks[running].cancel()
            self._finish(session, running, Failure(kind=FailureKind.CANCELLED, message=f"stopped: {reason}"))
        return self.sessions[session]

    async def end(self, session: SessionId, reason: str, *, by: Place | None = None, who: str = "") -> Session:
        return self._change(session, Phase.ENDED, reason)

    async def hand_over(self, session: SessionId, wish: HandOver) -> Session:
        self._note(session, "hand_over", wish.handover.place.words)
        return self.sessions[session]

    async def post(self, session: SessionId, wish: NotePost) -> Session:
        self._note(session, "post", wish.outgoing.id)
        return self.sessions[session]

    async def suspend(self, session: SessionId, reason: str) -> Session:
        return self._change(session, Phase.SUSPENDED, reason)

    async def resume(self, session: SessionId, reason: str, key: SessionKey | None = None) -> Session:
        return self._change(session, Phase.IDLE, reason)

    async def answer(self, session: SessionId, answer: str, source: Source, call: str = "") -> Session:
        self._note(session, "answer", answer, call)
        return self._change(session, Phase.RUNNING, "it was answered")

    async def unfinished(self) -> list[Session]:
        return [session for session in self.sessions.values() if is_pending(session)]

    async def awaiting_approval(self) -> list[Session]:
        return []

    async def prefer(self, session: SessionId, name: str, value: str | bool, reason: str) -> Session:
        found = self._get(session)
        changes: dict[str, Any] = {name: value}
        self.sessions[session] = replace(found, preferences=replace(found.preferences, **changes))
        return self.sessions[session]

    async def compress(self, session: SessionId, focus: str = "") -> Session:
        self._note(session, "compress", focus)
        return self._get(session)

    async def branch(
        self, session: SessionId, title: str = "", *, move_key: bool = False, after: TurnId | None = None
    ) -> Session:
        found = self._get(session)
        branch = a_session(f"{session}-{len(self.sessions)}", parent=session)
        self.sessions[branch.id] = replace(branch, preferences=replace(found.preferences, title=title))
        self.transcripts[branch.id] = list(self.transcripts.get(session, ()))
        self._note(session, "branch", title, str(move_key))
        return self.sessions[branch.id]

    async def undo(self, session: SessionId, turns: int = 1) -> Session:
        self._note(session, "undo", str(turns))
        return self._get(session)

    async def retry(self, session: SessionId, turn: TurnId, source: Source) -> Receipt:
        self._note(session, "retry", turn)
        last = self.submitted[-1]
        return await self.submit(replace(last, turn=turn, session=session, source=source, inbound=None))

    async def used(self, first_day: str) -> list[Tally]:
        return [tally for tally in self.tallies if tally.day >= first_day]

    async def records(self, session: SessionId, turn: TurnId) -> list[TurnRecord]:
        return self.turn_records.get(turn, [])

    async def journal(self, after: int, limit: int) -> JournalPage:
        entries = [entry for entry in self.journal_entries if entry.position > after][:limit]
        return JournalPage(entries=entries, position=entries[-1].position if entries else self.journal_end())

    def journal_end(self) -> int:
        return self.journal_entries[-1].position if self.journal_entries else 0

    async def trace(self, name: str, limit: int) -> list[TraceLine]:
        if name not in self.traces:
            raise UnknownSessionError(f"there is no session, message or turn {name}")
        return self.traces[name][-limit:]

    async def fact(self, name: str) -> bytes | None:
        return self.facts.get(name)

    async def granted(self) -> list[str]:
        return sorted(name.removeprefix("grant:") for name in self.facts if name.startswith("grant:"))

    async def withdraw(self, kind: str) -> None:
        del self.facts[f"grant:{kind}"]

    async def remember(self, name: str, value: bytes | None) -> None:
        if value is None:
            self.facts.pop(name, None)
        else:
            self.facts[name] = value

    async def erase(self, session: SessionId) -> None:
        self._get(session)
        del self.sessions[session]

    async def dead_letters(self) -> list[DeadLetter]:
        return list(self.letters.values())

    async def replay(self, dead_letter: str) -> Receipt:
        if dead_letter not in self.letters:
            raise BadInputError(f"there is no dead letter {dead_letter}", code="unknown_dead_letter")
        letter = self.letters.pop(dead_letter)
        return await self.submit(
            Submission(turn=letter.turn, messages=letter.messages, source=letter.source, session=letter.session)
        )

    # ------------------------------------------------------------ the toy agent

    async def _run(self, session: SessionId, turn: TurnId) -> None:
        self._hub.publish(TurnBegan(session=session, turn=turn, attempt=1))
        for word in self.words:
            self._hub.publish(TextDelta(session=session, turn=turn, text=word))
            await asyncio.sleep(0)
        await self.unheld.wait()
        self._finish(session, turn, self.failure)

    def _finish(self, session: SessionId, turn: TurnId, failure: Failure | None) -> None:
        outcome: TurnOutcome
        if failure is not None:
            outcome = TurnGaveUp(session=session, turn=turn, failure=failure)
        else:
            text = "".join(self.words)
            self._store(session, turn, encoded("assistant", text))
            usage = Usage(prompt_tokens=7, completion_tokens=len(self.words))
            outcome = TurnAnswered(
                session=session, turn=turn, text=text, model="toy-1", finish_reason="stop", usage=usage
            )
        self.outcomes[turn] = outcome
        self.sessions[session] = replace(self.sessions[session], phase=Phase.IDLE, turn=None, last_failure=failure)
        if not self.silent:
            self._hub.publish(outcome)

    def _session_for(self, submission: Submission) -> Session:
        new_id = SessionId(f"20270115_080000_{len(self.sessions):08x}")
        wanted = submission.session or new_id
        source = submission.source
        session = self.sessions.get(wanted) or a_session(wanted, platform=source.platform, owner=source.user)
        while session.successor:
            session = self.sessions[session.successor]
        running = Turn(id=submission.turn, accepted_at=NOW)
        self.sessions[session.id] = replace(session, phase=Phase.RUNNING, turn=running, turns=session.turns + 1)
        return session

    def _store(self, session: SessionId, turn: TurnId, *messages: EncodedMessage) -> None:
        transcript = self.transcripts.setdefault(session, [])
        for message in messages:
            transcript.append(StoredMessage(seq=Seq(len(transcript)), at=NOW, turn=turn, message=message))

    def _get(self, session: SessionId) -> Session:
        if session not in self.sessions:
            raise UnknownSessionError(f"there is no session {session}")
        return self.sessions[session]

    def _note(self, session: SessionId, *wish: str) -> None:
        self._get(session)
        self.wishes.append((session, *wish))

    def _change(self, session: SessionId, phase: Phase, reason: str) -> Session:
        self.sessions[session] = replace(self._get(session), phase=phase, reason=reason)
        self._hub.publish(PhaseChanged(session=session, phase=phase, reason=reason))
        return self.sessions[session]


class FakeOperations:
    def __init__(self) -> None:
        self.not_ready = ""
        self.problems: list[str] = []
        self.backups: list[Path] = []
        self.stop_reasons: list[str] = []
        self.trouble: HermesError | None = None
        self.pruned: list[tuple[float, bool]] = []
        self.queries: list[LiveQuery] = []

    async def figures(self) -> DaemonFigures:
        turns = TurnFigures(
            ended={"answered": 2, "timeout": 1},
            latency_s=Distribution(TURN_BOUNDS_S),
            first_token_s=Distribution(TURN_BOUNDS_S),
            used={"tiny-1": Usage(prompt_tokens=7, completion_tokens=3, cost_usd=0.5)},
        )
        turns.latency_s.observe(0.3)
        turns.latency_s.observe(1000.0)
        return DaemonFigures(
            turns=turns,
            turns_running=1,
            sessions_stored=5,
            sessions_live=3,
            sessions_waiting=0,
            mailbox={"session": 4},
            loop_lag_s=Distribution(LAG_BOUNDS_S),
            commits=10,
            transactions=20,
            commits_took_s=0.25,
            waiting_writes=0,
            outbox=2,
            dead_letters=0,
            store_bytes=4096,
            processes=1,
            memory_bytes=1 << 20,
            uptime_s=60.0,
            ready=True,
            version="0",
            children=ChildFigures(working=1, ended={(Purpose.REVIEW, ChildEnd.DONE): 2}),
            jobs=JobFigures(ended={JobRunState.DONE: 1}),
            events=EventFigures(hooks={"run": 3}, webhooks={("triage", "accepted"): 1}),
            learned={("memory", "agent"): 1},
        )

    async def live(self, query: LiveQuery) -> LiveSample:
        self.queries.append(query)
        figures = await self.figures()
        session = LiveSession(session=a_session("s1"), mailbox=2, step_age_s=None)
        return LiveSample(
            figures=figures,
            phases={Phase.IDLE: 1},
            sessions=[session],
            matching=1,
            actors=self.actors()[1:],
            platforms=[{"name": "slack", "state": "down", "problem": "no network"}],
            calling=1,
            lag_s=(0.001,),
            cpu_s=1.5,
        )

    async def prune(self, older_than_s: float, *, dry_run: bool = False) -> list[SessionId]:
        self.pruned.append((older_than_s, dry_run))
        return [SessionId("s1")]

    def actors(self) -> list[ActorView]:
        actor = ActorView(
            kind="SessionActor",
            name="s1",
            state="running",
            mailbox=2,
            oldest_s=0.5,
            handled=9,
            slowest_s=0.01,
            age_s=3.0,
        )
        return [actor, replace(actor, kind="JournalActor", name="journal", last_error="ValueError: no")]

    async def store_stats(self) -> StoreStats:
        if self.trouble:
            raise self.trouble
        return StoreStats(
            engine="memory",
            path="/nowhere",
            sessions=1,
            records=2,
            pending=0,
            dead_letters=0,
            bad_records=0,
            outbox=0,
            size_bytes=4096,
            used_bytes=100,
            map_bytes=2**30,
            free_disk_bytes=2**40,
            readers=1,
            commits=3,
            transactions=4,
            last_commit_s=0.001,
        )

    async def backup(self, target: Path) -> None:
        if self.trouble:
            raise self.trouble
        self.backups.append(target)

    async def take_in(self, file: Path, *, trust: bool = False) -> dict[str, Any]:
        if self.trouble:
            raise self.trouble
        return {"sessions": [file.name]}

    async def verify(self) -> list[str]:
        return self.problems

    def ready(self) -> str:
        return self.not_ready

    def version(self) -> str:
        return "1.2.3"

    def model(self) -> str:
        return "toy-1"

    def info(self) -> Mapping[str, Any]:
        return {"version": "1.2.3", "pid": 42, "uptime_s": 5.0, "model": "toy-1", "address": "http://127.0.0.1:1"}

    def request_stop(self, reason: str) -> None:
        self.stop_reasons.append(reason)

    async def reload(self, *, dry_run: bool = False) -> Mapping[str, Any]:
        return {"applied": {"log.level": ("INFO", "DEBUG")}, "needs_restart": {}}

    async def request_restart(self, reason: str, who: str = "") -> None:
        self.stop_reasons.append(f"restart: {reason}")


def encoded(role: str, content: str) -> EncodedMessage:
    return EncodedMessage(json.dumps({"role": role, "content": content}).encode())


def a_session(session: str, **changes: Any) -> Session:
    plain = Session(
        id=SessionId(session),
        key=SessionKey(f"agent:main:api:dm:{session}"),
        phase=Phase.IDLE,
        reason="new",
        since=NOW,
        created_at=NOW,
        active_at=NOW,
        next_seq=Seq(0),
        platform="api",
    )
    return replace(plain, **changes)


def a_dead_letter(name: str, session: str) -> DeadLetter:
    return DeadLetter(
        id=name,
        session=SessionId(session),
        turn=TurnId(f"turn-{name}"),
        messages=(encoded("user", "the text that crashed it"),),
        source=Source(platform="api"),
        options=b"{}",
        problem="ValueError: no",
        at=NOW,
    )


class FakeProcesses:
    """Background processes that are no more than their views."""

    def __init__(self, *views: ProcessView) -> None:
        self.known = {view.id: view for view in views}
        self.out = b""

    def views(self, root: SessionId | None = None) -> tuple[ProcessView, ...]:
        return tuple(view for view in self.known.values() if root in (None, view.session))

    async def listed(self, session: SessionId) -> tuple[ProcessView, ...]:
        return self.views(session)

    def blocks(self, view: ProcessView) -> str:
        return "it did something just now" if view.ended_at is None else ""

    def explain(self, view: ProcessView) -> str:
        return f"{view.command} is explained"

    async def output(self, process: str, offset: int, limit: int) -> Chunk:
        self._require(process)
        return Chunk(offset=offset, data=self.out[offset : offset + limit], total=len(self.out))

    async def tail(self, process: str, limit: int) -> Chunk:
        return await self.output(process, max(0, len(self.out) - limit), limit)

    async def kill(self, process: str, why: str, *, heard: bool = False) -> ProcessView:
        self._require(process)
        self.known[process] = replace(self.known[process], ended_at=NOW, signal=15, reason="killed", detail=why)
        return self.known[process]

    def _require(self, process: str) -> None:
        if process not in self.known:
            raise BadInputError(f"there is no background process {process}", code="unknown_process")


def process_view(name: str, session: str = "s", **changes: Any) -> ProcessView:
    view = ProcessView(
        id=name,
        session=SessionId(session),
        command="make all",
        pid=4711,
        started_at=NOW - 60,
        heartbeat_at=NOW,
        active_at=NOW - 5,
        ports=(8000,),
    )
    return replace(view, **changes)
