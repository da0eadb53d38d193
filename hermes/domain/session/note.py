"""Notes to the model and results of tool calls that did not complete, made from codes.

A note is a user message in the transcript, since chat models have no role for it. Its record, and not its text, tells
it from a person's message.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from hermes.domain.cause.cause import InterruptionCause, StopCause
from hermes.domain.turn.tool_call import Call, CallOutcome, InnerOutcome

NOTE_MARK = "[Note from the system:"
_CAUSES: Final[Mapping[InterruptionCause | StopCause, str]] = {
    InterruptionCause.UNKNOWN: "the turn was interrupted",
    InterruptionCause.CRASH: "Hermes crashed",
    InterruptionCause.ACTOR_CRASH: "an internal error interrupted the turn",
    InterruptionCause.SHUTDOWN: "Hermes was shut down",
    InterruptionCause.RESTART: "Hermes restarted",
    InterruptionCause.SUSPENDED: "the session was suspended",
    StopCause.ASKED: "the user stopped the turn",
    StopCause.NEW_MESSAGE: "the user stopped the turn with a new message",
    StopCause.SESSION_ENDED: "the session ended",
    StopCause.SESSION_DELETED: "the session was deleted",
}
_OUTCOMES: Final[Mapping[CallOutcome, str]] = {
    CallOutcome.OK: "done",
    CallOutcome.ERROR: "failed",
    CallOutcome.DENIED: "denied",
    CallOutcome.STOPPED: "stopped while it ran",
    CallOutcome.NOT_RUN: "not run",
    CallOutcome.NO_RESULT: "no result",
    CallOutcome.UNKNOWN: "it began, and its outcome is unknown",
}
DENIED = "Not run: the user denied this call. Do not try it in another form. Ask what to do instead."

NOBODY_TO_ASK = "Not run: it needs a person, and nobody reads this session. Finish without it."


def note(*sentences: str) -> str:
    return f"{NOTE_MARK} {' '.join(sentences)}]"


def interrupted(cause: InterruptionCause, *, lost: Iterable[Call], written: str, answer_first: bool) -> str:
    """Tell the model to continue an interrupted turn.

    `lost`: calls that had started. `written`: the part of its answer that the person may have seen. `answer_first`:
    the person has written since.
    """
    sentences = [f"This turn was interrupted: {_CAUSES[cause]}. Continue it now."]
    if names := ", ".join(f"{call.name} ({call.summary})" if call.summary else call.name for call in lost):
        sentences.append(f"These tool calls have no recorded outcome: {names}. Check their effects before a repeat.")
    if written:
        sentences.append(f"The user may have seen this part of your answer: «{written}».")
        sentences.append("Write your whole answer again, from its beginning.")
    if answer_first:
        sentences.append("The user has written since. Answer that message first.")
    return note(*sentences)


def reset_blocked(reason: str) -> str:
    return note(
        f"A reset of this conversation was due and did not happen: {reason}.",
        "Check your background processes and end those that are not needed any more.",
    )


def posted(texts: Iterable[str]) -> str:
    return note("These messages were posted in this chat since your last answer, without you:", *texts)


def step_limit(steps: int) -> str:
    return note(
        f"You have reached the limit of {steps} steps for one turn. Do not call tools.",
        "Report what is done, what is not done, and how to continue.",
    )


def no_outcome(cause: InterruptionCause | StopCause, inner: Sequence[InnerOutcome] = ()) -> str:
    """Return the result of a call that had started. `inner`: the calls that its script had made."""
    text = f"No recorded outcome: {_CAUSES[cause]} while this call ran. It may or may not have had effects."
    if not inner:
        return text
    lines = (f"{number}. {each.summary}: {_OUTCOMES[each.outcome]}" for number, each in enumerate(inner, 1))
    return "\n".join((text, "The script had made exactly these calls, in this order:", *lines))


def not_run(cause: InterruptionCause | StopCause) -> str:
    """Return the result of a call that had not started."""
    return f"Not run: {_CAUSES[cause]} before this call started."


NO_RESULT = "No result: the client that was to run this call sent none. It may or may not have run it."


def blocked(reason: str) -> str:
    return f"Not run: {reason}. Do not try it in another form."
