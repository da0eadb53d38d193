"""Tool step of a turn: run one journalled tool call and report the message for the model."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.agent.chat_message import encode
from hermes.domain.access.role import Role
from hermes.domain.event.hook import POST_TOOL
from hermes.domain.events import CallProgress
from hermes.domain.ids import SessionId
from hermes.domain.session.jobs import ToolJob, ToolReport
from hermes.domain.session.note import blocked
from hermes.domain.turn.tool_call import CallOutcome, Gate, Verdict
from hermes.domain.values import replace
from hermes.ports.hooks import ToolHooks, ToolUse
from hermes.ports.hub import Hub
from hermes.system.crash_point import reach
from hermes.tools.tool import ToolContext, ToolResult

if TYPE_CHECKING:
    from hermes.agent.model_step import TurnEnvironment

_GUEST_FOLDER = "guest"
_SKILL_TOOL = "skill_view"
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")


def _folder_name(session: SessionId) -> str:
    """Return a unique folder name. An id with unsafe characters gets part of its hash appended."""
    safe = _UNSAFE.sub("_", session)
    return safe if safe == session else f"{safe}-{hashlib.sha256(session.encode()).hexdigest()[:12]}"


class Folders:
    """Private folders of conversations, created when first needed.

    Received files are in `media`, with a directory for each scope.
    """

    def __init__(self, root: Path, media: Path | None = None, skills: Path | None = None) -> None:
        self.root = root
        self._media = media
        self._skills = skills

    def skills(self, tools: Collection[str]) -> Path | None:
        """Return the directory of the skills for a person with these tools. Blocking: call it in a thread."""
        return self._skills if self._skills is not None and _SKILL_TOOL in tools and self._skills.is_dir() else None

    def media(self, scope: str) -> Path | None:
        """Return the directory of a conversation's received files; None if it is not in a chat."""
        return self._media / scope if self._media is not None and scope else None

    def path(self, session: SessionId, role: Role = Role.OWNER) -> Path:
        """Return the folder's path, whether it exists or not. Guests have their own folder in it."""
        folder = self.root / _folder_name(session)
        return folder / _GUEST_FOLDER if role is Role.GUEST else folder

    def of(self, session: SessionId, role: Role = Role.OWNER) -> Path:
        """Return the folder and create it if needed. Blocking: call it in a thread."""
        folder = self.path(session, role)
        if not folder.is_dir():
            self._make(self.path(session))
            if role is Role.GUEST:
                self._make(folder)
                _start_in(folder)
        return folder

    def _make(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)

    def remove(self, session: SessionId) -> None:
        """Remove the folder of an erased conversation. Only a lineage's first session has one."""
        _remove_tree(self.root / _folder_name(session))


def _start_in(folder: Path) -> None:
    """Make a directory of this folder the initial one of the terminal and file tools, whatever is configured."""
    from hermes.tools.terminal.shell_state import ShellState, save  # noqa: PLC0415 - only where guests have tools

    files = folder / "files"
    files.mkdir(mode=0o700, exist_ok=True)
    save(folder, ShellState(cwd=str(files), changed={}))


def _remove_tree(folder: Path) -> None:
    """Rename the folder so that it is no longer found, then remove it. Raises OSError.

    A command may have made directories unreadable, or nested them deeper than Python can follow.
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
    def __init__(
        self,
        *,
        workshop: Callable[[], Awaitable[TurnEnvironment]],
        folders: Folders,
        hub: Hub,
        hooks: ToolHooks | None = None,
    ) -> None:
        self._hooks = hooks
        self._workshop = workshop
        self._folders = folders
        self._hub = hub

    async def run(self, job: ToolJob, monotonic: Callable[[], float]) -> ToolReport:
        began = monotonic()
        toolbox = (await self._workshop()).toolbox
        folder = await asyncio.to_thread(self._folders.of, job.root, job.role)
        tools = toolbox.names(job.platform, job.role)
        context = ToolContext(
            session=job.session,
            turn=job.turn,
            call=f"{job.turn[:8]}_{job.replies}_{_UNSAFE.sub('_', job.call)}",
            platform=job.platform,
            folder=folder,
            media=self._folders.media(job.media_scope),
            skills=await asyncio.to_thread(self._folders.skills, tools),
            permitted=job.permitted,
            role=job.role,
            by=job.by,
            only=job.only,
            purpose=job.purpose,
            scope=job.scope,
            call_id=job.call,
            children=job.children,
            progress=lambda text: self._hub.publish(
                CallProgress(session=job.session, turn=job.turn, call=job.call, text=text)
            ),
        )
        # Judge the call again: an earlier call may have changed the directory since it was proposed.
        proposal = await asyncio.to_thread(toolbox.propose, job.name, job.arguments, context)
        if refusal := proposal.problem or _refusal(proposal.gate, job):
            outcome = CallOutcome.ERROR if proposal.problem else CallOutcome.DENIED
            return _report(job, refusal, outcome, monotonic() - began)
        reach("turn: about to run a tool")
        result = await toolbox.run(job.name, proposal.arguments, context)
        reach("turn: a tool has run")
        text = await self._with_hooks(job, proposal.arguments, result)
        outcome = CallOutcome.OK if result.ok else CallOutcome.ERROR
        return replace(_report(job, text, outcome, monotonic() - began), spent=result.spent)

    async def _with_hooks(self, job: ToolJob, arguments: Mapping[str, Any], result: ToolResult) -> str:
        """Return the result with what hooks add to it."""
        parts = [result.text, job.context]
        if self._hooks is not None and self._hooks.concern(POST_TOOL, job.name):
            use = ToolUse(
                session=job.session,
                turn=job.turn,
                call=job.call,
                tool=job.name,
                arguments=arguments,
                platform=job.platform,
            )
            parts.append(await self._hooks.after(use, result.text, ok=result.ok))
        return "\n\n".join(filter(None, parts))


def _refusal(gate: Gate, job: ToolJob) -> str:
    """Return why the call may not run now; empty if it may."""
    if gate.verdict is Verdict.BLOCK:
        return blocked(gate.reason)
    if gate.verdict is Verdict.ASK and not job.unasked and not job.permitted.issuperset(gate.rules or ("",)):
        return f"Not run: it now needs approval ({gate.reason}). Call it again to ask the person."
    return ""


def not_acted(job: ToolJob, error: Exception) -> ToolReport:
    text = f"{job.name} failed unexpectedly ({type(error).__name__}). It may have done part of its work."
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
