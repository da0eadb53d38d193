"""Session of a response that continues another one: the same session, or a branch."""

from __future__ import annotations

from hermes.adapters.http.problem import Problem, ProblemError
from hermes.adapters.openai_api.turns.turn_view import turn_of
from hermes.domain.ids import SessionId, TurnId, TurnToken
from hermes.domain.session.state import Phase
from hermes.ports.sessions import Sessions


async def place_after(sessions: Sessions, before: TurnToken) -> SessionId:
    """Return the live end of its session if nothing followed, else a new branch that ends with it."""
    records = await sessions.records(before.session, before.turn)
    if not records:
        raise no_previous()
    turn = turn_of(records, before.turn)
    last = await _is_last(sessions, before.session, turn)
    return last if last is not None else (await sessions.branch(before.session, after=turn)).id


def gone_fact(turn: TurnId) -> str:
    """Return the name of the fact that a response was deleted, or is not stored."""
    return f"response:{turn}:gone"


async def is_gone(sessions: Sessions, response: TurnToken) -> bool:
    return await sessions.fact(gone_fact(response.turn)) is not None


def no_previous() -> ProblemError:
    message = "There is no response with this previous_response_id: it was deleted, not stored, or never existed."
    param = "previous_response_id"
    return ProblemError(Problem(status=404, code="previous_response_not_found", message=message, param=param))


async def _is_last(sessions: Sessions, session: SessionId, turn: TurnId) -> SessionId | None:
    """Return the session to continue in, if that turn is the last one there."""
    view = await sessions.view(session)
    head = view.session
    if head.phase in (Phase.ENDED, Phase.SUSPENDED):
        return None
    waiting = [each.id for each in (head.turn, *head.queue) if each is not None]
    if waiting:
        return head.id if waiting[-1] == turn else None
    for each in reversed(view.lineage):  # messages carried over from a parent belong to no turn
        last = await sessions.messages(each, None, 1, exact=True)
        if last and last[-1].turn:
            return head.id if last[-1].turn == turn else None
        if each == session:
            break
    return None
