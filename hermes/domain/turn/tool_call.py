"""Tool call of a turn, its gate, and its outcome."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from hermes.domain.source import Place
from hermes.domain.values import dataclass


class Effect(StrEnum):
    """Consequence of running a tool call again, if its outcome was not recorded."""

    PURE = "pure"  # it only reads, or its id makes a repeat harmless: run it again
    EFFECT = "effect"  # it may have changed something: never run it again by itself
    DURABLE = "durable"  # its work goes on without it, under the call's id: run it again to wait for it


class Verdict(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    BLOCK = "block"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Verdict about a tool call. `rules`: what a grant for longer would cover; all must be granted."""

    verdict: Verdict = Verdict.ALLOW
    reason: str = ""
    rules: tuple[str, ...] = ()
    once: bool = False  # an approval covers this call only
    findings: tuple[str, ...] = ()  # every reason, the worst first; `reason` has the first ones
    subjects: tuple[str, ...] = ()  # command that each finding is about; empty: the finding is a whole clause
    context: str = ""  # what hooks tell the model, with the result


class Approval(StrEnum):
    """Answer to a request for approval."""

    ONCE = "once"
    SESSION = "session"  # everything of that kind, until the conversation ends
    ALWAYS = "always"  # everything of that kind, in every conversation
    DENY = "deny"
    SHOW = "show"  # not a decision: show a shortened request in full


class JudgeVerdict(StrEnum):
    """Answer of a model to a request for approval. All but `approve` ask the person."""

    APPROVE = "approve"
    ASK = "ask"
    SUSPICIOUS = "suspicious"  # the command contains text that addresses a model: it was not asked
    UNREADABLE = "unreadable"  # its answer did not have the requested form
    FAILED = "failed"  # it did not answer in time


@dataclass(frozen=True, slots=True, kw_only=True)
class CallJudgement:
    verdict: JudgeVerdict
    model: str
    confidence: float = 0.0  # as the model states it
    reason: str = ""  # in the model's words


class CallState(StrEnum):
    PROPOSED = "proposed"  # the model asked for it
    ASKED = "asked"  # waits for a person
    STARTED = "started"  # may have had effects
    HANDED = "handed"  # the client runs it


class CallOutcome(StrEnum):
    OK = "ok"
    ERROR = "error"
    DENIED = "denied"
    STOPPED = "stopped"  # ended with the turn
    NOT_RUN = "not_run"
    NO_RESULT = "no_result"  # the client that was to run it sent none
    UNKNOWN = "unknown"  # it began, and its end is not recorded


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCall:
    """A tool call that the client runs."""

    id: str
    name: str
    arguments: str  # JSON, as the model wrote it


def client_calls(calls: Iterable[Mapping[str, Any]]) -> tuple[ClientCall, ...]:
    """Return the calls of a model's message."""
    return tuple(
        ClientCall(id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"])
        for call in calls
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class InnerOutcome:
    """Outcome of a call that a script made."""

    summary: str
    outcome: CallOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call without an outcome. Its arguments are in the transcript."""

    id: str
    name: str
    summary: str = ""  # one line for people
    state: CallState = CallState.PROPOSED
    parallel: bool = False
    effect: Effect = Effect.EFFECT
    gate: Gate = Gate()
    problem: str = ""  # not empty: it cannot run, and the model gets this text
    question: str = ""  # not empty: it asks the person a question and runs nothing
    choices: tuple[str, ...] = ()
    routed: bool = False  # the owner and the admins are asked, not the person of the turn
    asked_in: tuple[Place, ...] = ()  # chats in which they are asked
    approved_by: str = ""  # name, platform and user, role; empty: no approval was needed
    whole: str = ""  # exact command; empty: the summary is complete
    whole_file: str = ""  # path of a file with the whole question, where that is too long for a chat
    cut: bool = False  # only the beginning of the question was shown so far
    judgement: CallJudgement | None = None  # of a model; None: none was asked
    delegates: int = 0  # child sessions to start with it
    children: tuple[str, ...] = ()  # ids of the child sessions that were started with it
    within: str = ""  # call of the script that asked for it; empty: the model did
    inner: tuple[InnerOutcome, ...] = ()  # calls that its script made and that have an outcome
