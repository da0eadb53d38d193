"""Explanation of a session's state in words, for `hermes why`. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from hermes.domain.access.question import Question, open_question, waits_for
from hermes.domain.cause.cause import StopCause
from hermes.domain.cause.legacy_reason import stop_cause
from hermes.domain.cause.reason import with_person
from hermes.domain.child.child import Purpose
from hermes.domain.goal.goal import in_words
from hermes.domain.session.state import Phase, Session
from hermes.domain.session.turn_role import who_wants
from hermes.domain.turn.tool_call import Call, CallState, JudgeVerdict
from hermes.domain.turn.turn_failure import Failure, FailureKind

_COMMAND_CHARS = 200  # of a command that waits for permission


def explain(session: Session, now: float, *, alive: bool = True) -> str:
    """`alive`: a daemon runs."""
    lines = [_phase(session, now, alive=alive)]
    if (asked := open_question(session)) is not None:
        lines.append(_ways(session, asked))
    if session.handed:
        lines.append(_client_calls(session))
    if session.turn is not None and session.turn.role is not None:
        lines.append(f"The turn is that of {who_wants(session.turn)}.")
    lines += _places(session)
    if session.compressing:
        lines.append(f"It is being compressed: {session.compressing}.")
    if session.queue:
        lines.append(f"{_count(len(session.queue), 'message')} waiting for a turn.")
    if session.interruptions:
        lines.append(f"{_count(session.interruptions, 'interruption')} since the last finished turn.")
    if session.compression_failures:
        lines.append(_failed_compression(session))
    if session.last_failure is not None:
        lines.append(_last_failure(session.last_failure))
    if session.messages or session.turns:
        lines.append(
            f"{_count(session.turns, 'turn')} finished, {_count(session.messages, 'message')}; "
            f"a person last wrote {_ago(session.active_at, now)}."
        )
    else:
        lines.append("It has no messages yet.")
    return "\n".join(lines)


def _ways(session: Session, asked: Question) -> str:
    if asked.approval:
        return (
            f"It wants to run: {_cut(waits_for(session))}\n"
            f"To let it go on: `hermes approve {session.id}` or `hermes deny {session.id}`. "
            f"`hermes approve {session.id} show` shows all of what would run."
        )
    choices = f" ({', '.join(asked.choices)})" if asked.choices else ""
    return f"To let it go on: `hermes answer {session.id} TEXT`{choices}."


def _places(session: Session) -> list[str]:
    """Return where the conversation came from, what came to its chat, and where it went."""
    lines = [] if session.parent is None else [f"It continues {session.parent}."]
    if (assignment := session.assignment) is not None:
        cause = f" after turn {assignment.turn}" if assignment.turn else ""
        tools = ", ".join(assignment.tools) or "none"
        lines.append(f"It is a child session of {assignment.parent or 'the daemon'} ({assignment.purpose}){cause}.")
        if assignment.purpose is Purpose.JOB:
            job = assignment.key.split(":")[1]
            lines.append(f"It is a run of the scheduled job {job}: `hermes cron history {job}` shows its runs.")
        asked = "the person of its job" if assignment.parent is None else "its parent's person"
        alone = f"It asks {asked} for approvals." if assignment.asks else "It works alone and asks nobody."
        lines.append(f"{alone} Its tools: {tools}.")
    if session.children:
        links = ", ".join(f"{link.session} ({link.purpose})" for link in session.children)
        lines.append(f"Child sessions that it started last: {links}.")
    if session.goal is not None:
        lines.append(in_words(session.goal))
    if (moved := session.handover) is not None:
        origin = "a terminal or an API client" if moved.origin is None else moved.origin.words
        lines.append(f"It was handed over from {origin} to {moved.place.words}: {moved.reason}. Both lead to it.")
    if session.posted:
        posts = _count(len(session.posted), "message")
        lines.append(f"{posts} posted into its chat without the agent; the next turn shows them to the model.")
    if session.successor is not None and session.phase in (Phase.ENDED, Phase.SUSPENDED):
        lines.append(f"The conversation went on in {session.successor}: `hermes why {session.successor}` has more.")
    return lines


def _client_calls(session: Session) -> str:
    names = ", ".join(f"{call.name} ({call.id})" for call in session.handed)
    return f"Its client runs {names} and sends the results. Any other message ends these calls without a result."


def _cut(command: str) -> str:
    """Return the beginning of a command, on one line."""
    line = " ".join(command.split())
    return line if len(line) <= _COMMAND_CHARS else f"{line[:_COMMAND_CHARS]}…"


def last_problem(session: Session) -> str:
    """Return how the last turn failed; empty if it did not fail, or was stopped."""
    failure = session.last_failure
    return "" if failure is None or failure.kind is FailureKind.CANCELLED else _last_failure(failure)


def _last_failure(failure: Failure) -> str:
    if failure.kind is FailureKind.CANCELLED:
        text = with_person(failure.message, failure.by)
        by_request = stop_cause(failure) in (StopCause.ASKED, StopCause.NEW_MESSAGE)
        return f"The last turn was {text}." if by_request else f"The last turn was stopped: {text}."
    return f"The last turn failed ({failure.kind}): {failure.message}"


def _failed_compression(session: Session) -> str:
    times = _count(session.compression_failures, "time")
    why = f": {session.compression_problem}" if session.compression_problem else ""
    return f"It could not be compressed ({times} in a row){why}; nothing was lost, and it is tried again later."


def _phase(session: Session, now: float, *, alive: bool) -> str:
    since = f"since {_clock(session.since)} ({_ago(session.since, now)})"
    match session.phase:
        case Phase.IDLE:
            return f"Session {session.id} has been idle {since}: {session.reason}. The next message starts a turn."
        case Phase.RUNNING if not alive:
            return f"Session {session.id} has had an open turn {since}: {without_daemon(session)}."
        case Phase.RUNNING:
            return f"Session {session.id} has been running {since}: {_running(session)}."
        case Phase.WAITING:
            return f"Session {session.id} has waited for an answer {since}: {_sentence(session.reason)}"
        case Phase.RESUME_PENDING:
            held = f"with the next message, or by `hermes resume {session.id}`,"
            how = held if session.turn is not None else "by itself,"
            when = since.removeprefix("since ")
            return f"Session {session.id} was interrupted {when}: {session.reason}. It continues {how} under its id."
        case Phase.SUSPENDED:
            fresh = "" if session.successor else "The next message gets a fresh session; "
            back = f"`hermes resume {session.id}` brings this one back"
            return f"Session {session.id} has been suspended {since}: {session.reason}. {fresh}{back}."
        case Phase.ENDED:
            return (
                f"Session {session.id} ended {_clock(session.since)} ({_ago(session.since, now)}): {session.reason}."
            )


def without_daemon(session: Session) -> str:
    """Return why an open turn does not run while there is no daemon."""
    cut = f"it was interrupted ({session.resume_reason}), and " if session.resume_reason else ""
    return f"{cut}no daemon runs; it goes on when one does"


def _sentence(text: str) -> str:
    """Return the text with a full stop, unless it ends with punctuation."""
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _running(session: Session) -> str:
    stopping = f"; a stop was announced ({session.resume_reason})" if session.resume_reason else ""
    if (turn := session.turn) is None:
        return f"{session.reason}{stopping}"
    calls = [_call(call) for call in turn.calls if call.state is CallState.STARTED]
    doing = f"runs {', '.join(calls)}" if calls else f"waits for the model's answer number {turn.replies + 1}"
    again = f" (attempt {turn.attempt})" if turn.attempt > 1 else ""
    return f"turn {turn.id}{again} {doing}{stopping}"


def _call(call: Call) -> str:
    by = call.approved_by
    if not by and call.judgement is not None and call.judgement.verdict is JudgeVerdict.APPROVE:
        by = f"the model {call.judgement.model}"
    approved = f" (approved by {by})" if by else ""
    return f"{call.summary or call.name}{approved}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _ago(at: float, now: float) -> str:
    seconds = max(0, int(now - at))
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return f"{seconds} s ago"
