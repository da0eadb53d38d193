"""One tool call, from its journalled intent to the message that the model will see."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.agent.chat_message import encode
from hermes.domain.access.role import Role
from hermes.domain.events import CallProgress
from hermes.domain.session.jobs import ToolJob, ToolReport
from hermes.domain.session.note import blocked
from hermes.domain.types import CallOutcome, Gate, SessionId, Verdict
from hermes.ports.hub import Hub
from hermes.system.crash_point import reach
from hermes.tools.tool import ToolContext

if TYPE_CHECKING:
    from hermes.agent.model_step import TurnEnvironment

_OF_GUESTS = "guest"
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def _folder_name(session: SessionId) -> str:
    """A name that no other session has: one with characters that a name cannot hold gets a part of its hash."""
    safe = _UNSAFE.sub("_", session)
    return safe if safe == session else f"{safe}-{hashlib.sha256(session.encode()).hexdigest()[:12]}"


class Folders:
    """The private folder of each conversation, made when it is first needed.

    Files that people sent are in `media`, with a directory for each scope.
    """

    def __init__(self, root: Path, media: Path | None = None) -> None:
        self.root = root
        self._media = media

    def media(self, scope: str) -> Path | None:
        """Return the directory of the files that people sent to a conversation; None if it is in no chat."""
        return self._media / scope if self._media is not None and scope else None

    def path(self, session: SessionId, role: Role = Role.OWNER) -> Path:
        """Where it is, whether or not it has been made. Guests have their own within it, also where others talk."""
        folder = self.root / _folder_name(session)
        return folder / _OF_GUESTS if role is Role.GUEST else folder

    def of(self, session: SessionId, role: Role = Role.OWNER) -> Path:
        """In a thread."""
        folder = self.path(session, role)
        if not folder.is_dir():
            self._make(self.path(session))
            if role is Role.GUEST:
                self._make(folder)
                _begin_within(folder)
        return folder

    def _make(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)

    def remove(self, session: SessionId) -> None:
        """Of a conversation that was erased. The folder is its first session's: others of the lineage have none."""
        _remove_tree(self.root / _folder_name(session))


def _begin_within(folder: Path) -> None:
    """Have the shell and the file tools begin in a directory of this folder, whatever is configured."""
    from hermes.tools.terminal.shell_state import ShellState, save  # noqa: PLC0415 - only where guests have tools

    files = folder / "files"
    files.mkdir(mode=0o700, exist_ok=True)
    save(folder, ShellState(cwd=str(files), changed={}))


def _remove_tree(folder: Path) -> None:
    """Put it aside first, so that nobody finds it again under its name, then remove all of it. Raises OSError.

    A command may have closed directories, or nested them deeper than Python can follow.
    """
    aside = folder.with_name(f".removed-{secrets.token_hex(8)}")
    try:
        folder.rename(aside)
    except FileNotFoundError:
        return
    try:
        shutil.rmtree(aside, onerror=_open_and_remove)
    except (OSError, RecursionError):
        subprocess.run(("rm", "-rf", "--", str(aside)), check=False, capture_output=True)  # noqa: S603, S607


def _open_and_remove(remove: Callable[..., Any], path: str, _: object) -> None:
    for each in (Path(path).parent, Path(path)):
        if not each.is_symlink():
            each.chmod(0o700)
    if remove in (os.open, os.scandir):
        shutil.rmtree(path)
    else:
        remove(path)


class ToolStep:
    def __init__(self, *, workshop: Callable[[], Awaitable[TurnEnvironment]], folders: Folders, hub: Hub) -> None:
        self._workshop = workshop
        self._folders = folders
        self._hub = hub

    async def run(self, job: ToolJob, monotonic: Callable[[], float]) -> ToolReport:
        began = monotonic()
        toolbox = (await self._workshop()).toolbox
        folder = await asyncio.to_thread(self._folders.of, job.root, job.role)
        context = ToolContext(
            session=job.session,
            turn=job.turn,
            call=f"{job.turn[:8]}_{_UNSAFE.sub('_', job.call)}",
            platform=job.platform,
            folder=folder,
            media=self._folders.media(job.media_scope),
            permitted=job.permitted,
            role=job.role,
            by=job.by,
            progress=lambda text: self._hub.publish(
                CallProgress(session=job.session, turn=job.turn, call=job.call, text=text)
            ),
        )
        # Decided once more, where it runs: an earlier call may have gone elsewhere since it was proposed.
        proposal = await asyncio.to_thread(toolbox.propose, job.name, job.arguments, context)
        if refusal := proposal.problem or _refusal(proposal.gate, job):
            outcome = CallOutcome.ERROR if proposal.problem else CallOutcome.DENIED
            return _report(job, refusal, outcome, monotonic() - began)
        reach("turn: about to run a tool")
        result = await toolbox.run(job.name, proposal.arguments, context)
        reach("turn: a tool has run")
        return _report(job, result.text, CallOutcome.OK if result.ok else CallOutcome.ERROR, monotonic() - began)


def _refusal(gate: Gate, job: ToolJob) -> str:
    """Why a call that was to run may not, as things are now; empty: it may."""
    if gate.verdict is Verdict.BLOCK:
        return blocked(gate.reason)
    if gate.verdict is Verdict.ASK and not job.unasked and not job.permitted.issuperset(gate.rules or ("",)):
        return (
            f"Not run: as things are now it needs permission ({gate.reason}). Call it again, and the person is asked."
        )
    return ""


def not_acted(job: ToolJob, error: Exception) -> ToolReport:
    text = f"{job.name} could not be run ({type(error).__name__}); what it did, if anything, is not known"
    return _report(job, text, CallOutcome.ERROR, 0.0)


def _report(job: ToolJob, text: str, outcome: CallOutcome, took_s: float) -> ToolReport:
    return ToolReport(
        turn=job.turn,
        attempt=job.attempt,
        call=job.call,
        message=encode({"role": "tool", "tool_call_id": job.call, "content": text}),
        outcome=outcome,
        took_s=took_s,
    )
