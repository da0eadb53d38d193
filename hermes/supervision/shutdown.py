"""Shutdown protocol of the daemon as a machine. Pure.

`admit` decides what one request to stop changes: the first one starts the shutdown, a later one can cancel a restart
or force the exit. `step` drives the shutdown itself. The root actor feeds it events and performs the effects.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, TypeAlias, assert_never

from hermes.domain.values import dataclass, replace

EXIT_STORAGE: Final = 74
LAST_WORDS_S: Final = 1.0  # minimum time for delivering the answers of the last turns
SAMPLE_EVERY_S: Final = 1.0  # between two samples of the active work

Chats: TypeAlias = frozenset[tuple[str, str]]  # platform and chat


# ------------------------------------------------------------ requests


class StopTrigger(Enum):
    OPERATOR = auto()
    SIGTERM = auto()
    INTERRUPT = auto()
    STORAGE_FAILURE = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequest:
    reason: str
    cause: StopTrigger = StopTrigger.OPERATOR
    restart: bool = False  # start again, as the same process
    who: str = ""  # platform and user of the person who asked for it

    @property
    def exit_code(self) -> int:
        return EXIT_STORAGE if self.cause is StopTrigger.STORAGE_FAILURE else 0

    @property
    def announced(self) -> str:
        """The text that sessions and the clean marker keep."""
        return f"{'restart' if self.restart else 'shutdown'}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingStop:
    """The accepted request, and what later requests changed."""

    request: StopRequest
    comes_back: bool  # a restart was requested, and no stop since
    interrupted: bool  # by Ctrl-C; the next one forces the exit


class Admission(Enum):
    ACCEPTED = auto()
    REPEATED = auto()
    RESTART_CANCELLED = auto()
    RESTART_REFUSED = auto()
    FORCE_EXIT = auto()


def admit(pending: PendingStop | None, asked: StopRequest) -> tuple[PendingStop, Admission]:
    interrupt = asked.cause is StopTrigger.INTERRUPT
    if pending is None:
        return PendingStop(request=asked, comes_back=asked.restart, interrupted=interrupt), Admission.ACCEPTED
    if asked.restart:
        return pending, Admission.REPEATED if pending.comes_back else Admission.RESTART_REFUSED
    if interrupt and pending.interrupted:
        return pending, Admission.FORCE_EXIT
    changed = replace(pending, comes_back=False, interrupted=pending.interrupted or interrupt)
    return changed, Admission.RESTART_CANCELLED if pending.comes_back else Admission.REPEATED


# ------------------------------------------------------------ states


class ShutdownStage(Enum):
    """Stages of a shutdown, in their order. Each one runs the operation of the same name."""

    MARK_SESSIONS = auto()  # every session stores that it has to resume
    AWAIT_INTAKE = auto()  # messages that were on their way to disk arrive there
    MARK_NEW_TURNS = auto()  # the turns that these messages started
    NOTIFY_HOMES = auto()
    DRAIN = auto()  # turns finish
    LAST_WORDS = auto()  # their answers are delivered
    END_PROCESSES = auto()
    CLOSE_SERVERS = auto()
    STOP_CHILDREN = auto()  # in reverse order; the root does this itself
    CLOSE_WORKERS = auto()
    WRITE_CLEAN_MARKER = auto()


_STAGES: Final = tuple(ShutdownStage)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopBudget:
    drain_s: float
    extensible: bool = False  # a service manager grants more time


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """No stop was requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    request: StopRequest
    budget: StopBudget
    stage: ShutdownStage
    deadline: float | None = None  # of this stage; None: only the watchdog limits it
    sample_at: float | None = None  # time of the next sample of the active work
    least_active: int | None = None  # the lowest sample so far
    chats: Chats = frozenset()  # chats that learn of the stop from their own session


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    request: StopRequest


State: TypeAlias = Running | Stopping | Stopped


# ------------------------------------------------------------ events


@dataclass(frozen=True, slots=True, kw_only=True)
class ShutdownRequested:
    request: StopRequest
    budget: StopBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationDone:
    stage: ShutdownStage
    chats: Chats = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationFailed:
    stage: ShutdownStage


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerFired:
    active: int  # model calls and tool calls in flight


Event: TypeAlias = ShutdownRequested | OperationDone | OperationFailed | TimerFired


# ------------------------------------------------------------ effects


class Action(Enum):
    """Effects that are done when they return."""

    ARM_WATCHDOG = auto()  # with its full time, also when it is armed
    REPORT_STOPPING = auto()  # to the service manager and in the status
    CLOSE_INTAKE = auto()
    EXTEND_TIMEOUT = auto()  # of the service manager
    FINISH = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStage:
    """Start the operation of a stage. It cancels the one that still runs, and ends with an event."""

    stage: ShutdownStage


Effect: TypeAlias = Action | RunStage
Step: TypeAlias = tuple[State, tuple[Effect, ...]]


# ------------------------------------------------------------ the machine


def step(state: State, event: Event, now: float) -> Step:
    match state:
        case Running():
            return _begin(event, now) if isinstance(event, ShutdownRequested) else (state, ())
        case Stopping():
            return _advance(state, event, now)
        case Stopped():
            return state, ()
        case _:
            assert_never(state)


def next_timer(state: State) -> float | None:
    """Return the time at which the machine needs a TimerFired."""
    if not isinstance(state, Stopping):
        return None
    return min((at for at in (state.deadline, state.sample_at) if at is not None), default=None)


def _begin(event: ShutdownRequested, now: float) -> Step:
    begun: tuple[Effect, ...] = (Action.ARM_WATCHDOG, Action.REPORT_STOPPING, Action.CLOSE_INTAKE)
    state = Stopping(
        request=event.request,
        budget=event.budget,
        stage=ShutdownStage.MARK_SESSIONS,
        deadline=now + event.budget.drain_s,
    )
    # Without a store nothing can be marked, finished or delivered.
    first = (
        ShutdownStage.CLOSE_SERVERS
        if event.request.cause is StopTrigger.STORAGE_FAILURE
        else ShutdownStage.MARK_SESSIONS
    )
    entered, effects = _enter(state, first, now)
    return entered, (*begun, *effects)


def _advance(state: Stopping, event: Event, now: float) -> Step:
    match event:
        case ShutdownRequested():
            return state, ()  # `admit` has decided what it changes
        case OperationDone():
            if event.stage is not state.stage:
                return state, ()  # it was cancelled
            return _enter_next(replace(state, chats=state.chats | event.chats), now)
        case OperationFailed():
            if event.stage is not state.stage:
                return state, ()
            if state.stage in (ShutdownStage.MARK_SESSIONS, ShutdownStage.AWAIT_INTAKE):
                return _enter(
                    state, ShutdownStage.NOTIFY_HOMES, now
                )  # recovery finds the same work without the marks
            return _enter_next(state, now)
        case TimerFired():
            return _on_timer(state, event.active, now)
        case _:
            assert_never(event)


def _on_timer(state: Stopping, active: int, now: float) -> Step:
    if state.deadline is not None and now >= state.deadline:
        late = ShutdownStage.END_PROCESSES if state.stage is ShutdownStage.LAST_WORDS else ShutdownStage.LAST_WORDS
        return _enter(state, late, now)
    if state.sample_at is None or now < state.sample_at:
        return state, ()
    before = active if state.least_active is None else state.least_active
    sampled = replace(state, sample_at=now + SAMPLE_EVERY_S, least_active=min(active, before))
    if active >= before or not state.budget.extensible:
        return sampled, ()
    # Only a new minimum counts: a turn that never ends must not postpone the stop forever.
    extended = replace(sampled, deadline=now + state.budget.drain_s)
    return extended, (Action.EXTEND_TIMEOUT, Action.ARM_WATCHDOG)


def _enter_next(state: Stopping, now: float) -> Step:
    position = _STAGES.index(state.stage) + 1
    if position == len(_STAGES):
        return Stopped(request=state.request), (Action.FINISH,)
    return _enter(state, _STAGES[position], now)


def _enter(state: Stopping, stage: ShutdownStage, now: float) -> Step:
    deadline = state.deadline
    if stage is ShutdownStage.LAST_WORDS:
        deadline = max(now + LAST_WORDS_S, deadline or now)
    elif _STAGES.index(stage) > _STAGES.index(ShutdownStage.LAST_WORDS):
        deadline = None
    sample_at = now if stage is ShutdownStage.DRAIN else None
    return replace(state, stage=stage, deadline=deadline, sample_at=sample_at), (RunStage(stage=stage),)
