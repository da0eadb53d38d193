"""The command `/trust`: show, approve and withdraw the prompt files of a project (`AGENTS.md` and its like)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hermes.domain.access.prompt_file import PromptFile
from hermes.domain.ids import SessionId
from hermes.ports.prompt_files import PromptFiles
from hermes.services.commands.context import CommandContext, Handler
from hermes.services.commands.reply import CommandReply, refused

APPROVE, LIST, REMOVE = "approve", "list", "remove"
_DIGEST = re.compile(r"[0-9a-f]{16,64}")


async def trust(context: CommandContext) -> CommandReply:
    files = context.services.prompt_files
    if files is None:
        return refused("Prompt files are not available here.")
    word, _, rest = context.argument.partition(" ")
    session = context.session
    root = None if session is None else session.root or session.id
    if word == LIST and not rest:
        paths = await files.trusted()
        return CommandReply(text="\n".join(paths) or "No prompt file is approved.")
    if word == REMOVE:
        paths = await files.distrust(root, rest.strip())
        return CommandReply(text=_listed("No longer used:", paths) if paths else "No prompt file there was approved.")
    if word == APPROVE:
        return await _approve(context, files, root, rest.split())
    found = await files.found(root, context.argument)
    if not found:
        return refused("There is no prompt file in that directory.")
    return CommandReply(text=_question(found, context.argument))


async def _approve(
    context: CommandContext, files: PromptFiles, root: SessionId | None, words: list[str]
) -> CommandReply:
    digests = []
    while words and _DIGEST.fullmatch(words[0]):
        digests.append(words.pop(0))
    if not digests:
        return context.usage("A digest is missing: /trust shows the files and their digests.")
    paths = await files.trust(root, " ".join(words), digests)
    return CommandReply(text=_listed("Approved, and used in new conversations until they change:", paths))


def _question(found: Sequence[PromptFile], directory: str) -> str:
    command = " ".join(filter(None, (f"/trust {APPROVE}", *(each.digest for each in found), directory)))
    return "\n\n".join([*(each.shown() for each in found), f"To use this in the prompt, approve it with: {command}"])


def _listed(heading: str, paths: tuple[str, ...]) -> str:
    return "\n".join([heading, *paths])


HANDLERS: dict[str, Handler] = {"trust": trust}
