"""Start conditions of a command: directory, environment, shell and sandbox plan."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from hermes.domain.access.role import Role
from hermes.domain.values import dataclass, replace
from hermes.sandbox.inside_path import is_directory_inside
from hermes.sandbox.sandbox import Sandbox
from hermes.sandbox.sandbox_plan import BadWorkdirError, SandboxPlan
from hermes.tools.terminal.child_environment import child_environment
from hermes.tools.terminal.shell_state import FRESH, ShellState, load, nearest_directory
from hermes.tools.terminal.terminal_settings import TerminalSettings
from hermes.tools.tool import ToolContext, ToolError


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandStart:
    state: ShellState  # of the conversation's shell, before the command
    cwd: str  # the command's
    environ: Mapping[str, str] = field(repr=False)
    shell: str
    env_program: str
    notes: tuple[str, ...]
    base: Mapping[str, str] = field(repr=False)  # the variables that every command starts with
    plan: SandboxPlan | None = None  # None: it runs outside a sandbox


class StartPlanner:
    """Works out how a command starts. Blocking: it reads the disk."""

    def __init__(self, settings: TerminalSettings, sandbox: Sandbox | None, *, network: bool) -> None:
        self._settings = settings
        self._sandbox = sandbox
        self._network = network
        self._outside = child_environment(settings.environ, passed=settings.passed_names)

    def start(self, context: ToolContext, workdir: str, *, inside: bool) -> CommandStart:
        state, notes = self._state(context.folder, inside=inside)
        work = self._settings.work_of(context.folder, context.role)
        plan = self._plan(context, work) if inside else None
        base = self._outside if plan is None else self._inside(network=plan.network)
        wanted = Path(state.cwd or work)
        cwd = _nearest(wanted, plan, work)
        if workdir:
            cwd = cwd / _home_expanded(workdir, base)
            if not _is_directory(cwd, plan):
                raise ToolError(f"workdir {str(cwd)!r} is not a directory.")
        elif cwd != wanted:
            notes.append(f"directory {wanted} no longer exists; the command ran in {cwd}")
        path = base["PATH"]  # the daemon's: a command may have changed its own
        return CommandStart(
            state=state,
            cwd=str(cwd),
            environ={**state.environment(base), "PWD": str(cwd)},
            shell=shutil.which("bash", path=path) or "/bin/sh",
            env_program=shutil.which("env", path=path) or "/usr/bin/env",
            notes=tuple(notes),
            base=base,
            plan=None if plan is None else replace(plan, cwd=str(cwd)),
        )

    def _state(self, folder: Path, *, inside: bool) -> tuple[ShellState, list[str]]:
        """Return the stored shell state and notes about it. A command outside the sandbox starts with a fresh one."""
        notes = []
        try:
            state = load(folder)
        except (ValueError, OSError) as error:
            state = FRESH
            notes.append(f"could not read the saved directory and variables ({error}); started a fresh shell")
        return (FRESH if self._sandbox is not None and not inside else state), notes

    def _plan(self, context: ToolContext, work: str) -> SandboxPlan:
        assert self._sandbox is not None
        try:
            place = self._sandbox.place(context.folder, work, readable=context.received)
            return self._sandbox.plan(place, network=self._network and context.role is not Role.GUEST)
        except BadWorkdirError as error:
            raise ToolError(f"The command was not run: {error}. Choose another directory (terminal.cwd).") from error
        except OSError as error:
            reason = error.strerror or error
            raise ToolError(f"The command was not run: cannot use the conversation's folder: {reason}") from error

    def _inside(self, *, network: bool) -> Mapping[str, str]:
        assert self._sandbox is not None
        return self._sandbox.environment(self._outside, network=network)


def _nearest(wanted: Path, plan: SandboxPlan | None, work: str) -> Path:
    """Return the directory or its nearest existing parent; in a sandbox, the working directory if there is none."""
    if plan is None:
        return nearest_directory(wanted)
    return next((each for each in (wanted, *wanted.parents) if _is_directory(each, plan)), Path(work))


def _is_directory(path: Path, plan: SandboxPlan | None) -> bool:
    return path.is_dir() if plan is None else is_directory_inside(str(path), plan)


def _home_expanded(path: str, base: Mapping[str, str]) -> str:
    home = base.get("HOME", "~")
    return home + path[1:] if path == "~" or path.startswith("~/") else path
