"""The tool that sends a file to the person, on chat platforms.

A copy is put aside, and the result says where: from that the delivery follows, so that the file arrives as it was
when the model sent it, also after a crash. What is wrong with a file is told to the model, who can do something about
it. Only files of the working directory and of the conversation itself are sent, and never credentials.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeAlias

from hermes.media.reference import COPY
from hermes.media.store import MediaError
from hermes.tools.own_folder import anothers_folders
from hermes.tools.reading import check_regular, missing
from hermes.tools.tool import Tool, ToolContext, ToolError, tool
from hermes.tools.workplace import Workplace
from hermes.types import Gate, Verdict

MOST_BYTES = 50 << 20

GateRead: TypeAlias = Callable[[str], Gate]  # of an absolute path without links
PutAside: TypeAlias = Callable[[Path], Path]


def send_file_tool(workplace: Workplace, gate: GateRead, put_aside: PutAside, platforms: frozenset[str]) -> Tool:
    """`platforms` are those that take files."""

    @tool("send_file")
    async def send_file(
        context: ToolContext, *, path: Annotated[str, "the file, absolute or relative to the current directory"]
    ) -> str:
        """Send a file to the person in this chat: a picture, a document, or sound (.ogg comes as a voice message).

        50 MB at most, from the working directory. The person gets the file itself: do not repeat what is in it.
        """
        if context.platform not in platforms:
            raise ToolError("no file can be sent here: this conversation is not on a chat platform that takes them")

        def prepared() -> str:
            real = _sendable(workplace, gate, context, path)
            copy = put_aside(Path(real))
            told = {"status": "on its way to the person", "size_bytes": copy.stat().st_size, COPY: str(copy)}
            return json.dumps(told, ensure_ascii=False)

        try:
            return await asyncio.to_thread(prepared)
        except OSError as error:
            raise ToolError(f"{path} could not be copied: {error.strerror or error}") from error
        except MediaError as error:
            raise ToolError(f"{path} could not be copied: {error}") from error

    return send_file


def _sendable(workplace: Workplace, gate: GateRead, context: ToolContext, path: str) -> str:
    real = workplace.resolve(context.folder, path)
    anothers = anothers_folders(context.folder, workplace.hermes_home)(real)
    if anothers or gate(real).verdict is not Verdict.ALLOW:
        raise ToolError(f"{path} may not be sent: secrets or credentials are in it")
    roots = [workplace.cwd_of(context.folder), str(context.folder)]
    if context.role.approves:  # received files, and whatever is where conversations begin, may be other people's
        roots += [workplace.default_cwd, _media(workplace)]
    if not any(Path(real).is_relative_to(os.path.realpath(root)) for root in roots):
        raise ToolError(f"only files below {roots[0]} can be sent; copy it there first")
    try:
        status = Path(real).stat()
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError(missing(real)) from None
    check_regular(status.st_mode, real)
    if not status.st_size:
        raise ToolError(f"{path} is empty, and chat platforms take no empty files")
    if status.st_size > MOST_BYTES:
        raise ToolError(
            f"{path} has {status.st_size / (1 << 20):.0f} MB; chat platforms take 50 MB at most from a bot"
        )
    return real


def _media(workplace: Workplace) -> str:
    return os.path.join(workplace.hermes_home, "media")  # noqa: PTH118 - text, as the others are
