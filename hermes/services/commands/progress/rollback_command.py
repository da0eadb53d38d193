"""Command `/rollback`: return the working directory to a checkpoint."""

from __future__ import annotations

from datetime import UTC, datetime

from hermes.services.commands.context import CommandContext, Handler, whole_number
from hermes.services.commands.reply import CommandReply, refused

_MAX = 10_000
_SHOWN = 15
_DIFF_CHARS = 3_000


async def rollback(context: CommandContext) -> CommandReply:
    session, book = context.open, context.services.checkpoints
    if session is None or book is None:
        return CommandReply(text="This conversation has no checkpoints.")
    if not context.caller.may_decide(session):
        return refused("Another user started this conversation and decides about its files.")
    folder = (session.root or session.id, context.caller.role)
    words = context.argument.split()
    if not words:
        found = await book.listed(*folder)
        if not found:
            return CommandReply(text="This conversation has no checkpoints. The agent has changed no files yet.")
        lines = [
            f"{number}. {datetime.fromtimestamp(each.at, UTC):%Y-%m-%d %H:%M:%S UTC}, {each.reason}: {each.directory}"
            for number, each in enumerate(reversed(found), 1)
        ]
        more = [f"and {len(lines) - _SHOWN} older ones"] if len(lines) > _SHOWN else []
        return CommandReply(text="\n".join([*lines[:_SHOWN], *more, "/rollback diff N, /rollback N"]))
    number = whole_number(words[-1], low=1, high=_MAX)
    if number is None or len(words) > 2 or (len(words) == 2 and words[0].lower() != "diff"):
        return context.usage("The argument is not understood.")
    if len(words) == 2:
        shown = await book.compare(*folder, number)
        return CommandReply(text=_cut(shown.diff) or "Nothing has changed since that checkpoint.")
    done = await book.restore(*folder, number)
    if not done.changed:
        return CommandReply(text="Nothing has changed since that checkpoint.")
    names = ", ".join(done.changed[:_SHOWN]) + (", …" if len(done.changed) > _SHOWN else "")
    return CommandReply(
        text=f"Restored {len(done.changed)} files in {done.checkpoint.directory}: {names}\n"
        f"/rollback 1 takes it back. The agent does not know: tell it.\n\n{_cut(done.diff)}"
    )


def _cut(diff: str) -> str:
    return diff if len(diff) <= _DIFF_CHARS else f"{diff[:_DIFF_CHARS]}\n…"


HANDLERS: dict[str, Handler] = {"rollback": rollback}
