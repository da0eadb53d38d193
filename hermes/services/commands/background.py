"""What runs in the background of a conversation: the list, and an end to one of it. Works at any time."""

from __future__ import annotations

from hermes.domain.types import ProcessView
from hermes.services.commands.context import CommandContext, Handler, whole_number
from hermes.services.commands.reply import CommandReply, refused

_MAX = 10_000


async def processes(context: CommandContext) -> CommandReply:
    views = () if context.session is None else await context.desk.processes.listed(context.session.id)
    word, _, which = context.argument.partition(" ")
    if not word:
        return _listed(context, views)
    if word.lower() != "kill" or not which.strip():
        return context.usage("What shall be done with them?")
    return await _kill(context, views, which.strip())


def _listed(context: CommandContext, views: tuple[ProcessView, ...]) -> CommandReply:
    if not views:
        return CommandReply(text="Nothing runs in the background of this conversation.")
    explain = context.desk.processes.explain
    lines = [f"{n}. {view.id}: {explain(view)}" for n, view in enumerate(views, 1)]
    if any(view.ended_at is None for view in views):
        lines.append("/processes kill N ends one.")
    return CommandReply(text="\n".join(lines))


async def _kill(context: CommandContext, views: tuple[ProcessView, ...], which: str) -> CommandReply:
    assert context.session is not None or not views
    if context.session is not None and not context.caller.may_decide(context.session):
        return refused("Somebody else began this conversation, and decides what runs in it.")
    number = whole_number(which, low=1, high=_MAX)
    found = views[number - 1 : number] if number else [view for view in views if view.id == which]
    if not found:
        return refused(f"There is no process {which[:40]} here; /processes lists them.")
    [view] = found
    if view.ended_at is not None:
        return refused(f"{view.id} has ended already.")
    view = await context.desk.processes.kill(view.id, "asked for with /processes")
    if view.ended_at is None:
        return CommandReply(text=f"{view.id} was told to end; /processes shows when it has.")
    return CommandReply(text=f"{view.id} was ended: {view.command}")


HANDLERS: dict[str, Handler] = {"processes": processes}
