"""Commands `/processes`, `/agents` and `/background`: what runs beside the conversation. They work at any time."""

from __future__ import annotations

import json

from hermes.domain.events import TurnAnswered
from hermes.domain.history.message_chain import text_and_calls
from hermes.domain.process.process_record import ProcessView
from hermes.domain.session.protocol import StartBackground
from hermes.domain.session.state import Phase, Session
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Busy, Submission
from hermes.domain.turn.tool_call import CallState
from hermes.ports.children import ChildView
from hermes.services.commands.context import CommandContext, Handler, whole_number
from hermes.services.commands.reply import CommandReply, refused

_MAX = 10_000


async def processes(context: CommandContext) -> CommandReply:
    views = () if context.session is None else await context.services.processes.listed(context.session.id)
    word, _, which = context.argument.partition(" ")
    if not word:
        return _listed(context, views)
    if word.lower() != "kill" or not which.strip():
        return context.usage("The argument is not understood.")
    return await _kill(context, views, which.strip())


def _listed(context: CommandContext, views: tuple[ProcessView, ...]) -> CommandReply:
    if not views:
        return CommandReply(text="This conversation has no background processes.")
    explain = context.services.processes.explain
    lines = [f"{n}. {view.id}: {explain(view)}" for n, view in enumerate(views, 1)]
    if any(view.ended_at is None for view in views):
        lines.append("/processes kill N kills one.")
    return CommandReply(text="\n".join(lines))


async def _kill(context: CommandContext, views: tuple[ProcessView, ...], which: str) -> CommandReply:
    assert context.session is not None or not views
    if context.session is not None and not context.caller.may_decide(context.session):
        return refused("Another user started this conversation and decides what runs in it.")
    number = whole_number(which, low=1, high=_MAX)
    found = views[number - 1 : number] if number else [view for view in views if view.id == which]
    if not found:
        return refused(f"There is no process {which[:40]} in this conversation. /processes lists them.")
    [view] = found
    if view.ended_at is not None:
        return refused(f"{view.id} has already ended.")
    view = await context.services.processes.kill(view.id, "asked for with /processes")
    if view.ended_at is None:
        return CommandReply(text=f"{view.id} got a signal to end. /processes shows when it has ended.")
    return CommandReply(text=f"{view.id} was killed: {view.command}")


# ---------------------------------------------------------------- subagents

_SHOWN = 8  # last messages of a subagent
_LINE = 160  # characters of one of them
_NONE = "No subagents work for this conversation."


async def background(context: CommandContext) -> CommandReply:
    if not context.argument:
        return context.usage("The prompt is missing.")
    known = context.services.agents
    if known is None:
        return refused("Subagents are not available here.")
    session = await context.opened()
    wish = StartBackground(turn=context.services.new_turn_id(), task=context.argument, source=context.caller.source)
    after = await known.begin(session.id, wish)
    child = after.children[-1].session
    return context.reply(f"Subagent {child} works on it. Its report comes here. /agents shows it.", after)


async def agents(context: CommandContext) -> CommandReply:
    known = context.services.agents
    views = [] if context.session is None or known is None else await known.listed(context.session.id)
    word, _, rest = context.argument.partition(" ")
    if not word:
        return CommandReply(text=_agents_listed(views))
    which, _, text = rest.strip().partition(" ")
    if word.lower() not in ("show", "stop", "steer") or not which:
        return context.usage("The argument is not understood.")
    if context.session is not None and not context.caller.may_decide(context.session):
        return refused("Another user started this conversation and decides what runs in it.")
    if word.lower() == "stop" and which.lower() == "all":
        return await _stop(context, views)
    found = _find(views, which)
    if found is None:
        return refused(f"No subagent {which[:40]} works for this conversation. /agents lists them.")
    match word.lower():
        case "stop":
            return await _stop(context, [found])
        case "show":
            return await _show(context, found)
        case _:
            return await _steer(context, found, text.strip())


def _find(views: list[ChildView], which: str) -> ChildView | None:
    number = whole_number(which, low=1, high=_MAX)
    if number is not None and number <= len(views):
        return views[number - 1]
    return next((view for view in views if view.duty.child == which), None)


def _agents_listed(views: list[ChildView]) -> str:
    lines = [f"{n}. {view.duty.child}: {describe(view)}" for n, view in enumerate(views, 1)]
    return "\n".join([*lines, "/agents show N, /agents stop N, /agents steer N TEXT"]) if lines else _NONE


def describe(view: ChildView) -> str:
    """Return in words what a subagent does."""
    session, task = view.session, f" ({' '.join(view.duty.task.split())[:60]})" if view.duty.task else ""
    return f"{view.duty.purpose}{task}, {'waits for a place' if session is None else _doing(session)}"


def _doing(session: Session) -> str:
    tokens = session.usage.prompt_tokens + session.usage.completion_tokens
    spent = f"{tokens:,} tokens"
    turn = session.turn
    if session.phase is Phase.WAITING:
        return f"waits for approval: {session.reason}, {spent}"
    started = [call for call in turn.calls if call.state is CallState.STARTED] if turn is not None else []
    if started:
        return f"runs {', '.join(call.summary or call.name for call in started)}, {spent}"
    return f"{session.phase}, {turn.replies if turn is not None else 0} steps, {spent}"


async def _stop(context: CommandContext, views: list[ChildView]) -> CommandReply:
    known = context.services.agents
    if known is None or not views:
        return refused(_NONE)
    for view in views:
        await known.stop(view, context.reason)
    return CommandReply(text="Stopped: " + ", ".join(view.duty.child for view in views))


async def _steer(context: CommandContext, view: ChildView, text: str) -> CommandReply:
    if not text:
        return context.usage("The text is missing.")
    if view.session is None:
        return refused(f"Subagent {view.duty.child} has not started yet.")
    message = json.dumps({"role": "user", "content": text}, ensure_ascii=False)
    await context.sessions.submit(
        Submission(
            turn=context.services.new_turn_id(),
            messages=(EncodedMessage(message.encode("utf-8", "replace")),),
            source=view.duty.source,
            session=view.duty.child,
            busy=Busy.STEER,
        )
    )
    return CommandReply(text=f"Subagent {view.duty.child} reads it with its next step.")


async def _show(context: CommandContext, view: ChildView) -> CommandReply:
    if view.session is None:
        return CommandReply(text=f"Subagent {view.duty.child} waits for a place.")
    stored = await context.sessions.messages(view.duty.child, None, _SHOWN)
    lines = [line for each in stored for line in _lines(each.message)]
    outcome = await context.sessions.outcome(view.duty.child, view.duty.first_turn)
    end = "It has answered." if isinstance(outcome, TurnAnswered) else describe(view)
    return CommandReply(text="\n".join([f"{view.duty.child}:", *lines[-2 * _SHOWN :], end]))


def _lines(message: EncodedMessage) -> list[str]:
    role = json.loads(message).get("role", "")
    text, calls = text_and_calls(message)
    said = [f"[{role}] {_cut(text)}"] if text.strip() else []
    return said + [f"[call] {each['function']['name']} {_cut(each['function']['arguments'])}" for each in calls]


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LINE else f"{line[:_LINE]}…"


HANDLERS: dict[str, Handler] = {"processes": processes, "agents": agents, "background": background}
