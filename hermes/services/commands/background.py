"""Command `/processes`: list and kill background processes. Works at any time."""

from __future__ import annotations

from hermes.domain.process.process_record import ProcessView
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


HANDLERS: dict[str, Handler] = {"processes": processes}
