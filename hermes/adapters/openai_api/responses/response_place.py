"""Where a response goes on that names the one before it: in the same session, or in a branch from there."""

from __future__ import annotations

from hermes.adapters.http.problem import Problem, ProblemError
from hermes.adapters.openai_api.turns.turn_view import turn_of
from hermes.domain.turn_token import TurnToken
from hermes.domain.types import Phase, SessionId, TurnId
from hermes.ports.sessions import Sessions


async def place_after(sessions: Sessions, before: TurnToken) -> SessionId:
    """The live end of its session if nothing was said since, else a new session that knows no more than it did."""
    records = await sessions.records(before.session, before.turn)
    if not records:
        raise no_previous()
    turn = turn_of(records, before.turn)
    last = await _is_last(sessions, before.session, turn)
    return last if last is not None else (await sessions.branch(before.session, after=turn)).id


def no_previous() -> ProblemError:
    message = "There is no response under this previous_response_id: it was deleted, not stored, or never was."
    param = "previous_response_id"
    return ProblemError(Problem(status=404, code="previous_response_not_found", message=message, param=param))


async def _is_last(sessions: Sessions, session: SessionId, turn: TurnId) -> SessionId | None:
    """The session to go on in, if that turn is the last thing in it."""
    view = await sessions.view(session)
    head = view.session
    if head.phase in (Phase.ENDED, Phase.SUSPENDED):
        return None
    waiting = [each.id for each in (head.turn, *head.queue) if each is not None]
    if waiting:
        return head.id if waiting[-1] == turn else None
    for each in reversed(view.lineage):  # what was carried over from a parent belongs to no turn
        last = await sessions.messages(each, None, 1, exact=True)
        if last and last[-1].turn:
            return head.id if last[-1].turn == turn else None
        if each == session:
            break
    return None
