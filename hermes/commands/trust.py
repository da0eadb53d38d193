"""The command `/trust`: approve the prompt files of a project (`AGENTS.md` and its like), or withdraw that."""

from __future__ import annotations

from hermes.commands.errand import Errand, Handler
from hermes.commands.reply import Reply, refused

LIST, REMOVE = "list", "remove"


async def trust(errand: Errand) -> Reply:
    files = errand.desk.prompt_files
    if files is None:
        return refused("There are no prompt files here.")
    word, _, rest = errand.argument.partition(" ")
    session = errand.session
    root = None if session is None else session.root or session.id
    if word == LIST and not rest:
        paths = await files.trusted()
        return Reply(text="\n".join(paths) or "No prompt file is approved.")
    if word == REMOVE:
        paths = await files.distrust(root, rest.strip())
        return Reply(text=_listed("No longer used:", paths) if paths else "No prompt file there was approved.")
    paths = await files.trust(root, errand.argument)
    if not paths:
        return refused("There is no prompt file in that directory.")
    return Reply(text=_listed("Approved, and used in new conversations until they change:", paths))


def _listed(heading: str, paths: tuple[str, ...]) -> str:
    return "\n".join([heading, *paths])


HANDLERS: dict[str, Handler] = {"trust": trust}
