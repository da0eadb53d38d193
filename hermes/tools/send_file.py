"""Send_file tool: send a file to the person on a chat platform, or offer it to an API client for download.

The tool stores a copy and returns its path. Delivery sends that copy, so the person gets the file as it was at the
call, even after a crash. Problems with the file are reported to the model. Only files of the working directory, of
the conversation's own folder and received in the same chat can be sent, and never credentials.
"""

from __future__ import annotations

import asyncio
import json
import os
import stat
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, BinaryIO, TypeAlias

from hermes.domain.access.api_key import surface_of
from hermes.domain.media.reference import COPY
from hermes.domain.turn.tool_call import Gate, Verdict
from hermes.media.store import MediaError
from hermes.sandbox.sandbox_plan import HOME, TMP
from hermes.tools.files.file_reader import check_regular, missing
from hermes.tools.tool import Tool, ToolContext, ToolError, tool
from hermes.tools.workplace import Workplace

MAX_BYTES = 50 << 20
_API = "api"

GateRead: TypeAlias = Callable[[str], Gate]  # of an absolute path without links
PutAside: TypeAlias = Callable[[BinaryIO, str], Path]
Shelve: TypeAlias = Callable[[str, str, BinaryIO], Awaitable[str]]  # platform, name, file; returns a file id


def send_file_tool(
    workplace: Workplace,
    gate: GateRead,
    put_aside: PutAside,
    platforms: frozenset[str],
    *,
    shelve: Shelve | None = None,
    boxed: bool = False,
) -> Tool:
    """Return the tool. `platforms` accept files. `shelve` stores a file for download by a client of the API.

    `boxed`: the terminal's commands run in a sandbox.
    """

    @tool("send_file")
    async def send_file(
        context: ToolContext, *, path: Annotated[str, "the file, absolute or relative to the current directory"]
    ) -> str:
        """Send a file to the person: an image, a document or audio (.ogg becomes a voice message).

        The file must be in the working directory and have at most 50 MB. Do not repeat its content in your answer.
        """
        for_download = shelve is not None and surface_of(context.platform) == _API
        if context.platform not in platforms and not for_download:
            raise ToolError(
                "Files cannot be sent here: this conversation is not on a chat platform that accepts them."
            )

        def prepared() -> str:
            real = _sendable(workplace, gate, context, path, boxed=boxed)
            with _opened(real) as file:
                copy = put_aside(file, Path(real).name)
            result = {"status": "queued for delivery", "size_bytes": copy.stat().st_size, COPY: str(copy)}
            return json.dumps(result, ensure_ascii=False)

        async def shelved() -> str:
            assert shelve is not None
            real = await asyncio.to_thread(_sendable, workplace, gate, context, path, boxed=boxed)
            with await asyncio.to_thread(_opened, real) as file:
                file_id = await shelve(context.platform, Path(real).name, file)
            return json.dumps({"status": "ready for download", "file_id": file_id, "name": Path(real).name})

        try:
            return await (shelved() if for_download else asyncio.to_thread(prepared))
        except OSError as error:
            raise ToolError(f"{path} was not sent: could not copy it: {error.strerror or error}") from error
        except MediaError as error:
            raise ToolError(f"{path} was not sent: could not copy it: {error}") from error

    return send_file


def _sendable(workplace: Workplace, gate: GateRead, context: ToolContext, path: str, *, boxed: bool) -> str:
    work = os.path.realpath(workplace.work_of(context.folder, context.role))
    own = _own_directories(context)
    real = workplace.resolve(context.folder, path, context.role)
    if boxed and not _is_below(real, work, *own):
        cwd = workplace.cwd_of(context.folder, context.role)
        real = workplace.resolve(context.folder, _on_machine(context.folder, cwd, path), context.role)
    if not _is_below(real, *own):
        folder, hermes_home = os.path.realpath(context.folder), os.path.realpath(workplace.hermes_home)
        of_others = _is_below(real, hermes_home) and not _is_below(real, folder)
        if of_others or not _is_below(real, work):
            raise ToolError(f"Only files below {work} can be sent. Copy the file there first.")
        if gate(real).verdict is not Verdict.ALLOW:
            raise ToolError(f"{path} must not be sent: it contains secrets or credentials.")
    try:
        status = Path(real).stat()
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError(missing(real)) from None
    check_regular(status.st_mode, real)
    if not status.st_size:
        raise ToolError(f"{path} is empty. Chat platforms do not accept empty files.")
    if status.st_size > MAX_BYTES:
        raise ToolError(f"{path} has {status.st_size / (1 << 20):.0f} MB. Chat platforms accept at most 50 MB.")
    return real


def _opened(real: str) -> BinaryIO:
    """Open a checked path. Fails if a link or another kind of file replaced it since the check."""
    descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    same = sys.platform != "linux" or os.readlink(f"/proc/self/fd/{descriptor}") == real  # noqa: PTH115 - as text
    if not same or not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ToolError(f"{real} was replaced while it was read. Send it again.")
    return open(descriptor, "rb")  # noqa: PTH123 - a descriptor has no path


def _own_directories(context: ToolContext) -> list[str]:
    """Return the conversation's own directories: long outputs, received files, tmp and home."""
    folder = os.path.realpath(context.folder)
    return [*(f"{folder}/{name}" for name in ("outputs", "tmp", "home")), *map(os.path.realpath, context.received)]


def _on_machine(folder: Path, cwd: str, path: str) -> str:
    """Return the host path of a file in the sandbox's tmp or home; any other path unchanged."""
    named = HOME + path[1:] if path == "~" or path.startswith("~/") else path
    inside = os.path.normpath(os.path.join(cwd, named))  # noqa: PTH118 - text, as the others are
    for target, name in ((TMP, "tmp"), (HOME, "home")):
        outside = str(folder / name) + inside[len(target) :]
        if _is_below(inside, target) and Path(outside).exists():
            return outside
    return path


def _is_below(path: str, *directories: str) -> bool:
    return any(Path(path).is_relative_to(each) for each in directories)
