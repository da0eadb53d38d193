"""Command `/goal`: pursue a goal over several turns."""

from __future__ import annotations

from hermes.domain.errors import BadInputError
from hermes.domain.goal.goal import MAX_CHARS, Goal, GoalState, in_words
from hermes.domain.session.protocol import SetGoal
from hermes.domain.session.state import Session
from hermes.domain.turn.submission import Busy
from hermes.domain.values import replace
from hermes.services.commands.context import CommandContext, Handler
from hermes.services.commands.reply import CommandReply, refused
from hermes.services.commands.turn import submit

_NONE = "This conversation has no goal. /goal TEXT sets one."


async def goal(context: CommandContext) -> CommandReply:
    word = context.argument.strip()
    session = context.open
    current = None if session is None else session.goal
    if word.lower() in ("", "status"):
        return CommandReply(text=_NONE if current is None else in_words(current))
    if word.lower() not in ("pause", "resume", "clear"):
        return await _set(context, word)
    if session is None or current is None:
        return refused(_NONE)
    if not context.caller.may_decide(session):
        return refused("Another user started this conversation and decides about its goal.")
    match word.lower():
        case "pause":
            return await _change(context, session, replace(current, state=GoalState.PAUSED))
        case "resume":
            return await _resume(context, session, current)
        case _:
            await _store(context, session, SetGoal(goal=None, reason=context.reason))
            return CommandReply(text="The goal is cleared. A running turn goes on; /stop ends it.")


async def _set(context: CommandContext, text: str) -> CommandReply:
    if len(text) > MAX_CHARS:
        return refused(f"A goal has at most {MAX_CHARS:,} characters.")
    terms = context.services.goal_terms()
    session = await context.opened()
    if not context.caller.may_decide(session):
        return refused("Another user started this conversation and decides about its goal.")
    made = Goal(text=text, max_turns=terms.max_turns, max_usd=terms.max_usd, usd_before=session.usage.cost_usd)
    await _store(context, session, SetGoal(goal=made, reason=context.reason))
    started = await submit(replace(context, session=session), text, Busy.QUEUE)
    most = f"at most {made.max_turns} turns of its own" if made.max_turns else "without a limit of turns"
    said = context.reply(f"The goal is set, with {most}. /goal shows it, /goal pause holds it.", session)
    return replace(started, text=said.text, session=started.session or said.session)


async def _resume(context: CommandContext, session: Session, current: Goal) -> CommandReply:
    """Allow as many turns again, and start the next one."""
    cost_usd = session.usage.cost_usd
    again = replace(current, state=GoalState.ACTIVE, turns=0, usd_before=cost_usd)
    await _store(context, session, SetGoal(goal=again, reason=context.reason))
    if session.turn is not None:
        return CommandReply(text=in_words(again))
    started = await submit(context, f"Continue to work on the goal: {current.text}", Busy.QUEUE)
    return replace(started, text=in_words(again))


async def _change(context: CommandContext, session: Session, changed: Goal) -> CommandReply:
    await _store(context, session, SetGoal(goal=changed, reason=context.reason))
    return CommandReply(text=in_words(changed))


async def _store(context: CommandContext, session: Session, wish: SetGoal) -> None:
    if context.services.set_goal is None:
        raise BadInputError("goals are not available here", code="no_goals")
    await context.services.set_goal(session.id, wish)


HANDLERS: dict[str, Handler] = {"goal": goal}
