"""What runs in the background of a conversation: the list, and an end to one of it. Works at any time."""

from __future__ import annotations

from hermes.commands.errand import Errand, Handler, whole_number
from hermes.commands.reply import Reply, refused
from hermes.types import ProcessView

_MOST = 10_000


async def processes(errand: Errand) -> Reply:
    views = () if errand.session is None else await errand.desk.processes.listed(errand.session.id)
    word, _, which = errand.argument.partition(" ")
    if not word:
        return _listed(errand, views)
    if word.lower() != "kill" or not which.strip():
        return errand.usage("What shall be done with them?")
    return await _kill(errand, views, which.strip())


def _listed(errand: Errand, views: tuple[ProcessView, ...]) -> Reply:
    if not views:
        return Reply(text="Nothing runs in the background of this conversation.")
    explain = errand.desk.processes.explain
    lines = [f"{n}. {view.id}: {explain(view)}" for n, view in enumerate(views, 1)]
    if any(view.ended_at is None for view in views):
        lines.append("/processes kill N ends one.")
    return Reply(text="\n".join(lines))


async def _kill(errand: Errand, views: tuple[ProcessView, ...], which: str) -> Reply:
    assert errand.session is not None or not views
    if errand.session is not None and not errand.caller.may_decide(errand.session):
        return refused("Somebody else began this conversation, and decides what runs in it.")
    number = whole_number(which, low=1, high=_MOST)
    found = views[number - 1 : number] if number else [view for view in views if view.id == which]
    if not found:
        return refused(f"There is no process {which[:40]} here; /processes lists them.")
    [view] = found
    if view.ended_at is not None:
        return refused(f"{view.id} has ended already.")
    view = await errand.desk.processes.kill(view.id, "asked for with /processes")
    if view.ended_at is None:
        return Reply(text=f"{view.id} was told to end; /processes shows when it has.")
    return Reply(text=f"{view.id} was ended: {view.command}")


HANDLERS: dict[str, Handler] = {"processes": processes}
