"""A session in the pure machine alone: what happens to it, what it records, and what comes of that."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace

from hermes.domain.cause.cause import HoldCause, InterruptionCause
from hermes.domain.events import Event as LiveEvent
from hermes.domain.ids import InboundKey, Seq, SessionId, SessionKey, TurnId
from hermes.domain.read.transcript import Transcript
from hermes.domain.records import LogEntry, Record, SessionStarted
from hermes.domain.session.fold.state_fold import begin, replay
from hermes.domain.session.jobs import ModelReport, ToolReport
from hermes.domain.session.machine import open_work, step
from hermes.domain.session.protocol import (
    Answer,
    BranchOff,
    Effect,
    Event,
    ModelCallWork,
    Publish,
    Recover,
    Refuse,
    Step,
    SuccessorSession,
    Summarised,
    SummaryFailed,
    SummaryWork,
    ToolCallWork,
    TurnLimits,
    UndoTurns,
)
from hermes.domain.session.request import branch_of, undo_of, waiting_of
from hermes.domain.session.state import Phase, Session, Turn
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Submission
from hermes.domain.turn.tool_call import Call, CallOutcome, Gate, Verdict
from hermes.domain.turn.tool_call import Effect as Kind
from hermes.domain.turn.turn_failure import Failure, FailureKind
from hermes.domain.turn.usage import Usage

API = Source(platform="api")
STARTED = SessionStarted(at=0.0, key=SessionKey("agent:main:api:dm:s"), source=API, reason="first message")
FRESH = begin(SessionId("s"), STARTED)
USAGE = Usage(prompt_tokens=3, completion_tokens=2)
DEFAULTS = TurnLimits()
ASK = Gate(verdict=Verdict.ASK, reason="it deletes", rules=("rm",))


def user(text: str) -> EncodedMessage:
    return _encoded(role="user", content=text)


def assistant(text: str, calls: Iterable[Call] = ()) -> EncodedMessage:
    made = [{"id": call.id, "type": "function", "function": {"name": call.name, "arguments": "{}"}} for call in calls]
    return _encoded(role="assistant", content=text or None, **({"tool_calls": made} if made else {}))


def result(call: str, text: str) -> EncodedMessage:
    return _encoded(role="tool", tool_call_id=call, content=text)


def _encoded(**fields: object) -> EncodedMessage:
    return EncodedMessage(json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode())


def said(text: str, *, turn: str = "", busy: str = "", source: Source = API, inbound: str = "") -> Submission:
    return Submission(
        turn=TurnId(turn or text),
        messages=(user(text),),
        source=source,
        busy=busy,
        inbound=InboundKey(inbound) if inbound else None,
        fingerprint=b"f" if inbound else b"",
    )


def does(name: str, **changes: object) -> Call:
    """A call that changes something."""
    return replace(Call(id=name, name="write", summary=f"write {name}"), **changes)  # type: ignore[arg-type]


def reads(name: str) -> Call:
    """A call that only reads and may run beside others."""
    return Call(id=name, name="read", parallel=True, effect=Kind.PURE)


def needs_leave(name: str, *rules: str) -> Call:
    return does(name, gate=replace(ASK, rules=rules or ASK.rules))


def asks(name: str, *choices: str) -> Call:
    return Call(id=name, name="clarify", question="which one?", choices=choices, effect=Kind.PURE)


def names(records: Iterable[Record]) -> list[str]:
    return [type(record).__name__ for record in records]


class SessionTalk:
    def __init__(
        self, session: Session = FRESH, log: Iterable[Record] = (STARTED,), limits: TurnLimits = DEFAULTS
    ) -> None:
        self.session = session
        self.log: list[Record] = list(log)
        self.limits = limits
        self.now = 1.0
        self.child: SuccessorSession | None = None
        self.last = Step(session=session)

    # ------------------------------------------------------------ what happens

    def do(self, event: Event) -> Step:
        taken = step(self.session, event, self.now, self.limits)
        self.session = taken.session
        self.log.extend(taken.records)
        self.child = taken.child or self.child
        self.last = taken
        return taken

    def say(self, text: str, *, turn: str = "", busy: str = "") -> Step:
        return self.do(said(text, turn=turn, busy=busy))

    def reply(self, *calls: Call, text: str = "") -> Step:
        """The model asks for tools."""
        return self.do(self.model_says(text, calls))

    def answer(self, text: str = "yes", *, full: bool = False) -> Step:
        """The model has finished."""
        return self.do(replace(self.model_says(text, ()), context_full=full))

    def model_says(self, text: str, calls: tuple[Call, ...]) -> ModelReport:
        turn = self.turn
        return ModelReport(
            turn=turn.id,
            attempt=turn.attempt,
            replies=turn.replies,
            message=assistant(text, calls),
            text=text,
            model="m",
            finish_reason="tool_calls" if calls else "stop",
            usage=USAGE,
            calls=calls,
        )

    def fail(self, kind: FailureKind = FailureKind.TIMEOUT) -> Step:
        return self.do(self.model_fails(kind))

    def model_fails(self, kind: FailureKind = FailureKind.TIMEOUT) -> ModelReport:
        turn = self.turn
        why = Failure(kind=kind, message="too slow")
        return ModelReport(turn=turn.id, attempt=turn.attempt, replies=turn.replies, failure=why)

    def returns(self, call: str, text: str = "done") -> Step:
        return self.do(self.tool_returns(call, text))

    def tool_returns(self, call: str, text: str = "done") -> ToolReport:
        turn = self.turn
        return ToolReport(
            turn=turn.id,
            attempt=turn.attempt,
            call=call,
            message=result(call, text),
            outcome=CallOutcome.OK,
            took_s=0.5,
        )

    def tell(self, answer: str, *, source: Source = API, call: str = "") -> Step:
        """A person answers what a call asked."""
        return self.do(Answer(answer=answer, source=source, call=call))

    def crash(self, *, hold: HoldCause = HoldCause.NONE) -> Step:
        """What was in memory is gone; what was recorded is taken up again."""
        rebuilt = replay(self.session.id, self.entries())
        assert rebuilt is not None
        self.session = rebuilt
        return self.do(Recover(cause=InterruptionCause.CRASH, hold=hold))

    def summarised(self, child: str = "s2") -> SessionTalk:
        """The summary came out; the session that goes on from it."""
        transcript = self.transcript()
        self.do(
            Summarised(
                child=SessionId(child),
                messages=(user("[Summary of the earlier part of this conversation]"), *transcript.messages[-1:]),
                waiting=waiting_of(self.session, transcript),
                reason=self.session.compressing,
            )
        )
        assert self.child is not None
        return SessionTalk(self.child.session, self.child.records, self.limits)

    def summary_fails(self) -> Step:
        return self.do(SummaryFailed(reason="the model was busy"))

    def undo(self, turns: int = 1, again: str = "", source: Source = API) -> Step:
        asked = UndoTurns(turns=turns, again=TurnId(again) if again else None, source=source)
        return self.do(undo_of(asked, self.session, self.transcript()))

    def branch(self, child: str = "s3", undo: int = 0, title: str = "other") -> SessionTalk:
        asked = BranchOff(reason="a branch", title=title, undo=undo)
        self.do(branch_of(asked, self.session, self.transcript(), SessionId(child)))
        assert self.child is not None
        return SessionTalk(self.child.session, self.child.records, self.limits)

    # ------------------------------------------------------------ what came of it

    @property
    def turn(self) -> Turn:
        assert self.session.turn is not None
        return self.session.turn

    @property
    def phase(self) -> Phase:
        return self.session.phase

    @property
    def queue(self) -> list[str]:
        return [turn.id for turn in self.session.queue]

    def work(self) -> list[str]:
        """What is going on: `think`, the ids of calls, `summary`."""
        told = []
        for task in open_work(self.session, self.limits):
            match task:
                case ModelCallWork():
                    told.append("think, for the last time" if task.last else "think")
                case ToolCallWork():
                    told.append(task.call)
                case SummaryWork():
                    told.append("summary")
        return told

    def entries(self) -> list[LogEntry]:
        return [LogEntry(seq=Seq(seq), record=record) for seq, record in enumerate(self.log)]

    def transcript(self) -> Transcript:
        transcript = Transcript()
        transcript.extend((Seq(seq), record) for seq, record in enumerate(self.log))
        return transcript

    def shown(self) -> list[str]:
        """The transcript in short: who says what."""
        return [_short(message) for message in self.transcript().messages]


def _short(message: EncodedMessage) -> str:
    fields = json.loads(message)
    match fields["role"]:
        case "tool":
            return f"{fields['tool_call_id']}: {fields['content']}"
        case "assistant" if "tool_calls" in fields:
            return f"assistant calls {' '.join(call['id'] for call in fields['tool_calls'])}"
        case role:
            return f"{role}: {fields['content']}"


def of(kind: type[Effect], taken: Step) -> list[Effect]:
    return [effect for effect in taken.effects if isinstance(effect, kind)]


def events(taken: Step) -> list[LiveEvent]:
    return [effect.event for effect in taken.effects if isinstance(effect, Publish)]


def told(kind: type[LiveEvent], taken: Step) -> list[LiveEvent]:
    return [event for event in events(taken) if isinstance(event, kind)]


def refusal(taken: Step) -> str:
    """Why it was refused; and then nothing was recorded."""
    [effect] = taken.effects
    assert isinstance(effect, Refuse)
    assert taken.records == ()
    return str(effect.error)
