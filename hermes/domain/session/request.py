"""Requests and reports that become events only with the transcript at hand. Pure.

That is done when they are handled, not when they arrive: the transcript may have grown meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from hermes.domain.access.role import Role, lowest
from hermes.domain.errors import BadInputError
from hermes.domain.history.message_chain import text_and_calls
from hermes.domain.ids import SessionId
from hermes.domain.read.transcript import Transcript, carry
from hermes.domain.records import MessageReceived
from hermes.domain.session.jobs import SummaryReport
from hermes.domain.session.protocol import Branch, BranchOff, Request, Summarised, SummaryFailed, Undo, UndoTurns
from hermes.domain.session.state import Session, Turn
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Submission
from hermes.domain.turn.tool_call import Call, CallState
from hermes.domain.values import replace


class TooFarBackError(BadInputError):
    """The requested turns begin before this session. All but the last `own` are in its parent."""

    def __init__(self, session: Session, own: int) -> None:
        super().__init__(f"session {session.id} does not go back that many turns", code="nothing_to_undo")
        self.own = own


def event_of(
    request: Request, session: Session, transcript: Transcript, new_session: Callable[[], SessionId]
) -> Undo | Branch | Summarised | SummaryFailed:
    """Raises RefusedError."""
    match request:
        case UndoTurns():
            return undo_of(request, session, transcript)
        case BranchOff():
            return branch_of(request, session, transcript, new_session())
        case SummaryReport() if request.problem:
            return SummaryFailed(reason=request.problem)
        case SummaryReport():
            carried = carry(transcript, request.messages)
            return Summarised(
                child=new_session(),
                messages=request.messages,
                waiting=waiting_of(session, transcript),
                reason=session.compressing,
                usage=request.usage,
                model=request.model,
                origins=carried.origins,
                starts=carried.starts,
                instructions=transcript.instructions,
            )
        case _:
            assert_never(request)


def undo_of(request: UndoTurns, session: Session, transcript: Transcript) -> Undo:
    first = _start_of(request.turns, session, transcript)
    seq, offset = transcript.place(first)
    reason = f"{request.turns} turns were taken back" if request.turns != 1 else "the last turn was taken back"
    again = None
    if request.again is not None:
        said = _said_at(first, transcript)
        role = lowest(request.source.standing, _role_at(first, session, transcript) or request.source.standing)
        again = Submission(turn=request.again, messages=said, source=replace(request.source, role=role))
        reason = "the last message was sent again"
    return Undo(seq=seq, offset=offset, turns=request.turns, reason=reason, again=again)


def branch_of(request: BranchOff, session: Session, transcript: Transcript, child: SessionId) -> Branch:
    if request.span:
        end = _end_of(request.span, session, transcript)
    elif request.undo:
        end = _start_of(request.undo, session, transcript)
    else:
        end = _last_settled(session, transcript)
    return Branch(
        child=child,
        messages=tuple(transcript.messages[:end]),
        prompt=transcript.prompt if session.prompted else None,
        title=request.title,
        reason=request.reason,
        move_key=request.move_key,
        origins=tuple(transcript.origins[:end]),
        starts=tuple(start for start in transcript.starts if start < end),
        instructions=transcript.instructions,
        handed=_handed_at(end, transcript),
    )


def waiting_of(session: Session, transcript: Transcript) -> tuple[MessageReceived, ...]:
    """Return the queued messages, for a session that takes them over."""
    return tuple(
        MessageReceived(
            at=turn.accepted_at,
            turn=turn.id,
            messages=transcript.waiting.get(turn.id, ()),
            source=_author_of(turn, session),
            options=turn.options,
            steer=turn.steer,
            chain=turn.chain,
        )
        for turn in session.queue
    )


def _author_of(turn: Turn, session: Session) -> Source:
    platform, _, user = (turn.by or session.platform).partition(":")
    return Source(
        platform=platform,
        user=user if turn.by else session.owner,
        place=turn.place,
        role=turn.role,
        name=turn.name,
    )


def _start_of(turns: int, session: Session, transcript: Transcript) -> int:
    if not 0 < turns <= len(transcript.starts):
        raise TooFarBackError(session, transcript.own - transcript.taken_back)
    return transcript.starts[-turns]


def _end_of(span: tuple[int, int], session: Session, transcript: Transcript) -> int:
    first, last = span
    begin, end = transcript.shown_before(first), transcript.shown_before(last + 1)
    if begin == end:
        raise BadInputError(f"that turn of session {session.id} was taken back", code="turn_taken_back")
    return end


def _handed_at(end: int, transcript: Transcript) -> tuple[Call, ...]:
    """Return the calls of the last message of a copy. They have no results in it: a client runs them."""
    calls = text_and_calls(transcript.messages[end - 1])[1] if end else []
    return tuple(Call(id=call["id"], name=call["function"]["name"], state=CallState.HANDED) for call in calls)


def _last_settled(session: Session, transcript: Transcript) -> int:
    """All there is, but for an answer whose calls have no outcome yet: they are this session's, and no copy's."""
    calls = session.handed if session.turn is None else session.turn.calls
    return transcript.asked_at(calls[0].id) if calls else len(transcript.messages)


def _role_at(first: int, session: Session, transcript: Transcript) -> Role | None:
    """Return the role that a turn began with; None if it is unknown and the conversation has one person."""
    known = transcript.roles[transcript.starts.index(first)]
    shared = session.company is not None and session.company.shared
    return Role.GUEST if known is None and shared else known


def _said_at(first: int, transcript: Transcript) -> tuple[EncodedMessage, ...]:
    """Return the person's message at that place, with the history that the client sent."""
    own = transcript.starts[len(transcript.starts) - transcript.own :]
    if first not in own:
        return (transcript.messages[first],)
    end = next(
        (n for n in range(first, len(transcript.messages)) if transcript.place(n)[0] != transcript.place(first)[0]),
        None,
    )
    return tuple(transcript.messages[first:end])
