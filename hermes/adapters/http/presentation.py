"""Public JSON form of sessions, events and figures, the same on every HTTP surface.

Times are seconds since the epoch. No decisions here. Public names never change.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hermes.adapters.http.caller import shown_failure, shown_why
from hermes.domain.access.question import waits_for
from hermes.domain.read.activity import activity_of
from hermes.domain.turn.tool_call import CallState

if TYPE_CHECKING:
    from hermes.domain.outbox_message import DeadLetter, OutboxMessage
    from hermes.domain.process.process_record import ProcessView
    from hermes.domain.read.trace import TraceLine
    from hermes.domain.read.views import SessionView, StoredMessage
    from hermes.domain.session.state import Session, Turn
    from hermes.ports.children import ChildView
    from hermes.ports.search import Found, IndexProgress

JsonObject = dict[str, Any]

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


def encode(value: Any) -> bytes:
    """Encode as compact UTF-8. Half a surrogate pair, which a model can produce, becomes `?`."""
    return _ENCODER.encode(value).encode("utf-8", "replace")


def session(session: Session) -> JsonObject:
    return {
        "id": session.id,
        "key": session.key,
        "title": session.preferences.title,
        "phase": session.phase.value,
        "reason": session.reason,
        "since": session.since,
        "created_at": session.created_at,
        "active_at": session.active_at,
        "platform": session.platform,
        "parent": session.parent,
        "successor": session.successor,
        "running_turn": session.turn.id if session.turn else None,
        "role": session.turn.role if session.turn else None,
        "queued": len(session.queue),
        "compressing": bool(session.compressing),
        "interruptions": session.interruptions,
        "messages": session.messages,
        "turns": session.turns,
        "usage": plain(session.usage),
        "context_tokens": session.context_tokens,
        "last_failure": plain(shown_failure(session.last_failure)) if session.last_failure else None,
        "child": child(session),
    }


def child(session: Session) -> JsonObject | None:
    """Return who started a child session, and why; None for every other session."""
    if (assignment := session.assignment) is None:
        return None
    return {"purpose": assignment.purpose.value, "parent": assignment.parent, "turn_id": assignment.turn}


def subagent(view: ChildView, task: str) -> JsonObject:
    """Return what a subagent does. Its session does not exist while it waits for a place."""
    session = view.session
    used = session.usage if session is not None else None
    return {
        "id": view.duty.child,
        "parent": view.duty.parent,
        "purpose": view.duty.purpose.value,
        "task": task,
        "phase": session.phase.value if session is not None else None,
        "reason": session.reason if session is not None else "",
        "since": session.since if session is not None else None,
        "tokens": used.prompt_tokens + used.completion_tokens if used is not None else 0,
        "doing": _running_calls(session),
    }


def _running_calls(session: Session | None) -> list[str]:
    calls = session.turn.calls if session is not None and session.turn is not None else ()
    return [call.summary or call.name for call in calls if call.state is CallState.STARTED]


def view(view: SessionView) -> JsonObject:
    return {
        "session": session(view.session),
        "why": shown_why(view),
        "waits_for": waits_for(view.session),
        "lineage": list(view.lineage),
        "live": view.live,
        "mailbox": view.mailbox,
        "queue": [waiting(turn) for turn in view.session.queue],
        "preferences": plain(view.session.preferences),
    }


def running(session: Session, preview: str) -> JsonObject:
    """Return a session with open work, for a list of what runs."""
    activity = activity_of(session)
    return {
        "id": session.id,
        "title": session.preferences.title,
        "preview": preview,
        "platform": session.platform,
        "phase": session.phase.value,
        "doing": activity.kind.value,
        "what": list(activity.what),
        "step": activity.step,
        "since": session.since,
        "turn_id": session.turn.id if session.turn else None,
        "queued": len(session.queue),
        "child": child(session),
    }


def hit(hit: Found) -> JsonObject:
    return {
        "session_id": hit.session,
        "seq": hit.seq,
        "at": hit.at,
        "role": hit.role,
        "snippet": hit.snippet,
        "person": hit.person,
    }


def findings(query: str, hits: list[JsonObject], index: IndexProgress | None) -> JsonObject:
    return {"query": query, "hits": hits, "index": None if index is None else plain(index)}


def waiting(turn: Turn) -> JsonObject:
    return {"turn_id": turn.id, "accepted_at": turn.accepted_at, "steer": turn.steer}


def transcript(messages: Sequence[StoredMessage]) -> list[JsonObject]:
    return [_message(stored) for stored in messages]


def _message(stored: StoredMessage) -> JsonObject:
    message = json.loads(stored.message)
    calls = {name: message[name] for name in ("tool_calls", "tool_call_id") if name in message}
    return {
        "seq": stored.seq,
        "at": stored.at,
        "turn": stored.turn,
        "role": message.get("role"),
        "note": stored.note,
        "content": message.get("content"),
        **({"by": stored.by} if stored.by else {}),
        **({"answered": stored.answered} if stored.answered else {}),
        **calls,
    }


def trace_line(line: TraceLine) -> JsonObject:
    return {**plain(line), "problems": list(line.problems)}


def outbox_message(outgoing: OutboxMessage) -> JsonObject:
    """Return a message of the outbox without its text, which does not belong in a list."""
    return {
        "id": outgoing.id,
        "kind": outgoing.kind.value,
        "place": plain(outgoing.place),
        "session": outgoing.session,
        "turn": outgoing.turn,
        "final": outgoing.final,
        "tries": outgoing.tries,
        "problem": outgoing.problem,
        "at": outgoing.at,
    }


def dead_letter(letter: DeadLetter) -> JsonObject:
    """Return a dead letter without its text, which does not belong in a list."""
    outgoing = letter.undelivered
    return {
        "id": letter.id,
        "kind": "message" if outgoing is None else outgoing.kind.value,
        "place": None if outgoing is None else plain(outgoing.place),  # where it could not be delivered
        "session": letter.session,
        "turn": letter.turn,
        "problem": letter.problem,
        "at": letter.at,
    }


def process(view: ProcessView, *, now: float, blocks: str, explanation: str) -> JsonObject:
    return {
        "id": view.id,
        "session_id": view.session,
        "command": view.command,
        "pid": view.pid,
        "running": view.ended_at is None,
        "started_at": view.started_at,
        "age_s": max(0.0, (now if view.ended_at is None else view.ended_at) - view.started_at),
        "heartbeat_at": view.heartbeat_at,
        "active_at": view.active_at,
        "cpu_s": view.cpu_s,
        "memory_bytes": view.memory_bytes,
        "output_bytes": view.output_bytes,
        "ports": list(view.ports),
        "ended_at": view.ended_at,
        "exit_code": view.exit_code,
        "signal": view.signal,
        "reason": view.reason,
        "detail": view.detail,
        "blocks_reset": bool(blocks),
        "explanation": explanation,
    }


def plain(value: Any) -> JsonObject:
    """Return a value object's fields by name."""
    return dataclasses.asdict(value)
