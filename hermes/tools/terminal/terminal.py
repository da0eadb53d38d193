"""The terminal tool: a shell command, run to its end within a time, its output and exit code told to the model.

Commands run in a sandbox where there is one (`hermes/sandbox/`). Running outside of it is an argument of the call,
and that is what the owner is asked about. Directory and exported variables carry over to the conversation's next
command, also after a restart (`shell_state`); those of a command outside do not. Whatever a command started ends with
it: processes that are to stay are for `background`. Nobody answers questions: there is nothing to read, or a terminal
at its end of input.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, Any, Final, Protocol

from hermes.domain.access.role import Role
from hermes.domain.process.box import Box
from hermes.domain.types import Gate, SessionId, TurnId, Verdict
from hermes.domain.values import dataclass
from hermes.processes.child import ChildLimits, ChildProcess, spawn
from hermes.processes.command_output import CommandOutput, LineFeed
from hermes.sandbox.boxed_child import SandboxFailedError, spawn_boxed
from hermes.sandbox.cgroup import Cgroups, ControlGroup, held_group
from hermes.sandbox.host_grants import joined_gate, network_gate, requested_hosts
from hermes.sandbox.inside_path import is_directory_inside
from hermes.sandbox.network import ProxyAttachment, SandboxNetwork
from hermes.sandbox.plan import BadWorkdirError, SandboxPlan
from hermes.sandbox.sandbox import Sandbox
from hermes.tools.terminal.child_environment import child_environment
from hermes.tools.terminal.foreground import Ending, run_to_end
from hermes.tools.terminal.shell_state import (
    FRESH,
    ShellState,
    load,
    nearest_directory,
    open_capture,
    read_capture,
    save,
    shell_argv,
)
from hermes.tools.tool import Tool, ToolContext, ToolError, ToolResult, tool

_NO_TIMEOUT: Final = "timeout does not hold for a background command: it runs until it ends or is killed"
OUTSIDE_SANDBOX: Final = "outside-sandbox"  # the rule that a person allows
_COMMAND_MAX_BYTES: Final = 100_000  # the kernel takes 128 KB in one argument


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalSettings:
    environ: Mapping[str, str] = field(repr=False)  # the daemon's own; few of them are passed on
    work_of: Callable[[Path, Role], str]  # of a conversation's folder: where its shell begins
    timeout_s: float = 180.0
    timeout_max_s: float = 600.0
    passed_names: tuple[str, ...] = ()  # variables passed on beside the usual ones
    memory_bytes: int = 0  # heap of each process in a sandbox
    kept_bytes: int = 50_000  # of an output, for the model
    stored_max_bytes: int = 20 * 2**20  # of an output, in its file
    limits: ChildLimits = ChildLimits()


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundCommand:
    """A command that shall outlive its call, with all that it needs to start."""

    session: SessionId
    turn: TurnId
    call: str
    folder: Path
    command: str
    cwd: str
    environ: Mapping[str, str] = field(repr=False)
    pty: bool
    limits: ChildLimits
    shell: str = "/bin/sh"
    box: Box | None = None  # the sandbox it runs in
    permitted: frozenset[str] = frozenset()  # for its network
    notify: bool = False  # its end is told
    watch: tuple[str, ...] = ()  # texts in its output that are told
    role: Role = Role.GUEST  # of the turn that it is started in


@dataclass(frozen=True, slots=True, kw_only=True)
class _Start:
    """Where and with what a command begins."""

    state: ShellState
    kept_cwd: str  # the shell's own
    cwd: str  # the command's
    environ: Mapping[str, str] = field(repr=False)
    shell: str
    env_program: str
    notes: tuple[str, ...]
    base: Mapping[str, str] = field(repr=False)  # the variables that every command begins with
    plan: SandboxPlan | None = None  # of its sandbox


class Decide(Protocol):
    def __call__(self, command: str, cwd: str, *, work: str, inside: bool, own_directory: bool) -> Gate:
        """`cwd` is empty when there is none, `work` the working directory. `inside`: it would run in the sandbox."""


def terminal_tool(
    settings: TerminalSettings,
    decide: Decide,
    background: Callable[[BackgroundCommand], Awaitable[str]] | None = None,
    sandbox: Sandbox | None = None,
    network: SandboxNetwork | None = None,
) -> Tool:
    """Without `network` a sandbox has none."""
    shell = _Terminal(settings, background, sandbox, network)

    def gate(arguments: Mapping[str, Any], context: ToolContext) -> Gate:
        outside = bool(arguments.get("outside_sandbox"))
        inside = shell.boxed and not outside
        cwd = shell.directory(context, arguments.get("workdir", ""), inside=inside)
        work = settings.work_of(context.folder, context.role)
        own = Path(work).parent == context.folder
        found = decide(arguments["command"], cwd, work=work, inside=inside, own_directory=own)
        if shell.boxed and outside:
            return _leaving(found)
        return joined_gate(found, shell.network_gate(arguments.get("network_hosts") or (), context.role))

    made = tool("terminal", decide=gate, available=_why_not)(shell.terminal)
    return replace(
        made,
        parameters=_with_times(_offered(made.parameters, boxed=shell.boxed, network=network is not None), settings),
        requires=(("background", "process"),),
    )


def _leaving(gate: Gate) -> Gate:
    """To leave the sandbox is asked about each time, whatever the command is."""
    if gate.verdict is Verdict.BLOCK:
        return gate
    leaves = "it runs outside the sandbox, with all rights of this user"
    return Gate(
        verdict=Verdict.ASK,
        reason="; ".join(filter(None, (leaves, gate.reason))),
        rules=(OUTSIDE_SANDBOX, *gate.rules),
        once=True,
        findings=(leaves, *(gate.findings or filter(None, (gate.reason,)))),
        subjects=("", *gate.subjects) if gate.subjects else (),
    )


def _offered(parameters: Mapping[str, Any], *, boxed: bool, network: bool) -> Mapping[str, Any]:
    """Without a sandbox there is no way out of it, and without a network no host to ask for."""
    absent = {"outside_sandbox": not boxed, "network_hosts": not (boxed and network)}
    left = {name: value for name, value in parameters["properties"].items() if not absent.get(name)}
    return {**parameters, "properties": left}


def _why_not() -> str:
    return "" if hasattr(os, "memfd_create") else "it needs Linux"


def _with_times(parameters: Mapping[str, Any], settings: TerminalSettings) -> dict[str, Any]:
    said = f"seconds until it is ended: {settings.timeout_s:g} unless given, {settings.timeout_max_s:g} at most"
    properties = parameters["properties"]
    return {**parameters, "properties": {**properties, "timeout": {**properties["timeout"], "description": said}}}


class _Terminal:
    def __init__(
        self,
        settings: TerminalSettings,
        background: Callable[[BackgroundCommand], Awaitable[str]] | None,
        sandbox: Sandbox | None,
        network: SandboxNetwork | None,
    ) -> None:
        self._network = network
        self._settings = settings
        self._background = background
        self._sandbox = sandbox if sandbox is not None and sandbox.works else None
        self._outside = child_environment(settings.environ, passed=settings.passed_names)

    @property
    def boxed(self) -> bool:
        return self._sandbox is not None

    def network_gate(self, texts: Sequence[str], role: Role) -> Gate:
        try:
            hosts = requested_hosts(texts)
        except ValueError as error:
            raise ToolError(str(error)) from error
        if not hosts or not self.boxed:
            return Gate()
        if self._network is None or role is Role.GUEST:
            raise ToolError("there is no network in this sandbox, so no host can be allowed")
        return network_gate(hosts, self._network.hosts)

    def directory(self, context: ToolContext, workdir: str, *, inside: bool) -> str:
        """Where a command would run now; empty when it cannot. Blocking, like all that looks at the disk."""
        try:
            return self._start(context, workdir, inside=inside).cwd
        except ToolError:
            return ""

    async def terminal(
        self,
        context: ToolContext,
        *,
        command: Annotated[str, "what to run, as typed into bash; may have several lines"],
        timeout: float | None = None,  # noqa: ASYNC109 - for the model; described by `_with_times`
        workdir: Annotated[str, "directory for this command only; without it the one that the last left"] = "",
        pty: Annotated[bool, "run on a terminal, for programs that insist on one"] = False,
        background: Annotated[bool, "let it run on by itself, for servers and long work; answers at once"] = False,
        notify: Annotated[bool, "with background: have its end told to you, in a message of its own"] = False,
        watch: Annotated[
            list[str] | None, "with background: have lines told to you that contain one of these, in the same case"
        ] = None,
        outside_sandbox: Annotated[
            bool, "run outside the sandbox, with all rights of the owner's user; the owner is asked each time"
        ] = False,
        network_hosts: Annotated[  # noqa: ARG002
            list[str] | None, "hosts to reach that were refused before; the owner is asked about them"
        ] = None,  # judged by the gate; what was allowed is in `context.permitted`
    ) -> ToolResult:
        """Run a shell command and get its output (standard error included) and exit code.

        The directory (cd) and exported variables are kept for your next command. There is nobody to type: nothing can
        be read from standard input, so use flags that answer questions (-y). What a command leaves running with & is
        ended with it, also a background command: for what shall stay use background, without & or nohup, and the
        process tool to look after it. Prefer the file tools for reading, searching and editing files.
        """
        limit_s = self._checked(command, timeout)
        inside = self.boxed and not outside_sandbox
        start = await asyncio.to_thread(self._start, context, workdir, inside=inside)
        if background:
            told = await self._hand_over(context, command, start, pty=pty, notify=notify, watch=tuple(watch or ()))
            return ToolResult(text=told if timeout is None else f"{told}\n[{_NO_TIMEOUT}]")
        if notify or watch:
            raise ToolError("nothing was run: notify and watch are for background=true")
        output = CommandOutput(
            context.folder / "outputs",
            context.call,
            kept_bytes=self._settings.kept_bytes,
            stored_max_bytes=self._settings.stored_max_bytes,
        )
        feed = LineFeed(context.progress, terminal=pty)
        attached: list[ProxyAttachment] = []
        async with held_group(self._cgroups(start)) as group:
            with open_capture() as capture:
                attach = self._attach(context, start, attached)
                child = await self._spawn(command, start, capture, pty=pty, group=group, attach=attach)
                try:
                    end = await run_to_end(
                        child, output, feed, limit_s=limit_s, processes_max=self._settings.limits.processes
                    )
                except SandboxFailedError:
                    words = output.text(terminal=pty).strip()
                    raise ToolError(f"nothing was run: the sandbox could not be started: {words}") from None
                finally:
                    feed.close()
                    child.close()
                    for each in attached:
                        await each.close()
                keeps = end.whole and not (self.boxed and outside_sandbox)
                kept = await self._keep(context.folder, start, capture, stay=bool(workdir)) if keeps else ()
            killed = await self._memory_note(group)
        advice = self._advice() if end.timed_out else ()
        refused = filter(None, (each.note() for each in attached))
        notes = [*start.notes, *end.notes, *killed, *advice, *kept, *refused, *_exit_code(end)]
        text = _told(output.text(terminal=pty), notes)
        return ToolResult(text=text, ok=end.whole and end.code == 0, excerpt=output.is_cut)

    def _checked(self, command: str, timeout_s: float | None) -> float:
        """The time the command gets."""
        most = self._settings.timeout_max_s
        if not command.strip():
            raise ToolError("the command is empty")
        try:
            size = len(command.encode())
        except UnicodeEncodeError:
            raise ToolError("the command is not valid text: it holds half of a surrogate pair") from None
        if "\0" in command:
            raise ToolError("the command holds a NUL character, which no shell can take; write it as \\0 in a printf")
        if size > _COMMAND_MAX_BYTES:
            raise ToolError(
                f"the command has {size} bytes, more than the {_COMMAND_MAX_BYTES} that fit; "
                "write it to a file with write_file and run that file"
            )
        if timeout_s is None:
            return min(self._settings.timeout_s, most)
        if timeout_s <= 0:
            raise ToolError("the timeout must be more than 0 seconds")
        if timeout_s > most:
            advice = "do it in steps" if self._background is None else "use background=true, or do it in steps"
            raise ToolError(f"a command may take at most {most:g} s, not {timeout_s:g}; for longer work {advice}")
        return timeout_s

    def _start(self, context: ToolContext, workdir: str, *, inside: bool) -> _Start:
        """Blocking."""
        notes = []
        try:
            state = load(context.folder)
        except (ValueError, OSError) as error:
            state = FRESH
            notes.append(f"the directory and variables of before could not be read ({error}); this is a fresh shell")
        work = self._settings.work_of(context.folder, context.role)
        plan = self._plan(context, work) if inside else None
        if self.boxed and not inside:
            state = FRESH  # that of the sandbox means nothing outside
        base = self._outside if plan is None else self._inside(network=plan.network)
        wanted = Path(state.cwd or work)
        cwd = kept_cwd = _nearest(wanted, plan, work)
        if workdir:
            cwd = cwd / _home_expanded(workdir, base)
            if not _is_directory(cwd, plan):
                raise ToolError(f"the workdir {str(cwd)!r} is not a directory")
        elif cwd != wanted:
            notes.append(f"the directory {wanted} does not exist any more; this ran in {cwd}")
        path = base["PATH"]  # the daemon's: a command may have changed its own
        return _Start(
            state=state,
            kept_cwd=str(kept_cwd),
            cwd=str(cwd),
            environ={**state.environment(base), "PWD": str(cwd)},
            shell=shutil.which("bash", path=path) or "/bin/sh",
            env_program=shutil.which("env", path=path) or "/usr/bin/env",
            notes=tuple(notes),
            base=base,
            plan=None if plan is None else replace(plan, cwd=str(cwd)),
        )

    def _plan(self, context: ToolContext, work: str) -> SandboxPlan:
        """Blocking."""
        assert self._sandbox is not None
        try:
            place = self._sandbox.place(context.folder, work, readable=context.received)
            return self._sandbox.plan(place, network=self._network is not None and context.role is not Role.GUEST)
        except BadWorkdirError as error:
            raise ToolError(f"nothing was run: {error}. Choose another directory (terminal.cwd).") from error
        except OSError as error:
            raise ToolError(f"the conversation's folder cannot be used: {error.strerror or error}") from error

    def _inside(self, *, network: bool) -> Mapping[str, str]:
        assert self._sandbox is not None
        return self._sandbox.environment(self._outside, network=network)

    async def _hand_over(
        self, context: ToolContext, command: str, start: _Start, *, pty: bool, notify: bool, watch: tuple[str, ...]
    ) -> str:
        if self._background is None:
            raise ToolError(
                "background processes are not available here; run it in the foreground with a timeout that suffices "
                f"(at most {self._settings.timeout_max_s:g} s), in steps if need be"
            )
        async with held_group(self._cgroups(start), stays=True) as group:
            asked = BackgroundCommand(
                session=context.session,
                turn=context.turn,
                call=context.call,
                folder=context.folder,
                command=command,
                cwd=start.cwd,
                environ=start.environ,
                pty=pty,
                limits=replace(self._limits(start), cpu_s=0),
                shell=start.shell,
                box=await asyncio.to_thread(self._box, start, group, pty=pty),
                permitted=context.permitted,
                notify=notify,
                watch=watch,
                role=context.role,
            )
            return _told(await self._background(asked), start.notes)

    def _attach(
        self, context: ToolContext, start: _Start, attached: list[ProxyAttachment]
    ) -> Callable[[int], Awaitable[None]] | None:
        """What gives the sandbox its network, before the command starts."""
        network = self._network
        if network is None or start.plan is None or not start.plan.network:
            return None

        async def attach(init: int) -> None:
            attached.append(await network.attach(init, permitted=context.permitted))

        return attach

    async def _spawn(
        self,
        command: str,
        start: _Start,
        capture: int,
        *,
        pty: bool,
        group: ControlGroup | None,
        attach: Callable[[int], Awaitable[None]] | None,
    ) -> ChildProcess:
        argv = shell_argv(
            shell=start.shell,
            env=start.env_program,
            command=command,
            capture=capture,
            limits=self._limits(start),
        )
        try:
            box = await asyncio.to_thread(self._box, start, group, pty=pty)
            if box is not None:
                return await spawn_boxed(
                    box,
                    argv,
                    shell=start.shell,
                    environ=start.environ,
                    terminal=pty,
                    pass_fds=(capture,),
                    prepare=attach,
                )
            return await spawn(
                argv,
                shell=start.shell,
                cwd=start.cwd,
                environ=start.environ,
                terminal=pty,
                pass_fds=(capture,),
            )
        except SandboxFailedError as error:
            raise ToolError(f"nothing was run: the sandbox could not be started: {error}") from error
        except OSError as error:
            raise ToolError(f"the command could not be started in {start.cwd}: {error.strerror}") from error

    def _box(self, start: _Start, group: ControlGroup | None, *, pty: bool) -> Box | None:
        """Blocking."""
        if start.plan is None or self._sandbox is None:
            return None
        box = self._sandbox.box(start.plan, terminal=pty)
        return box if group is None else group.entered_by(box)

    def _cgroups(self, start: _Start) -> Cgroups | None:
        return None if start.plan is None or self._sandbox is None else self._sandbox.cgroups

    async def _memory_note(self, group: ControlGroup | None) -> tuple[str, ...]:
        if group is None or not await asyncio.to_thread(group.ran_out_of_memory):
            return ()
        return (f"killed: the command used more than the {self._settings.memory_bytes >> 20} MB of memory allowed",)

    def _limits(self, start: _Start) -> ChildLimits:
        """In a sandbox the kernel counts its processes alone, so that there can be a limit on them."""
        limits = self._settings.limits
        if start.plan is None:
            return limits
        return replace(limits, user_processes=limits.processes, data_bytes=self._settings.memory_bytes)

    def _advice(self) -> tuple[str, ...]:
        longer = f"allow more time (at most {self._settings.timeout_max_s:g} s)"
        instead = "" if self._background is None else ", or use background=true"
        return (f"its directory and variables were not kept; {longer}{instead}",)

    async def _keep(self, folder: Path, start: _Start, capture: int, *, stay: bool) -> tuple[str, ...]:
        """Remember what the shell left, for the next command. With `stay` the directory of before remains."""
        try:
            state = await asyncio.to_thread(self._save, folder, start, capture, stay=stay)
        except OSError as error:
            return (f"the directory and variables could not be kept: {error.strerror}",)
        if state is None:
            return ("the shell did not tell its directory and variables at its end; those of before hold",)
        return ()

    def _save(self, folder: Path, start: _Start, capture: int, *, stay: bool) -> ShellState | None:
        """Blocking."""
        left = read_capture(capture, start.base)
        if left is None:
            return None
        state = ShellState(cwd=start.state.cwd if stay else left.cwd, changed=left.changed)
        if state != start.state:
            save(folder, state)
        return state


def _nearest(wanted: Path, plan: SandboxPlan | None, work: str) -> Path:
    """The directory itself or, when it is gone, the first above it that is there; in a sandbox at worst its own."""
    if plan is None:
        return nearest_directory(wanted)
    return next((each for each in (wanted, *wanted.parents) if _is_directory(each, plan)), Path(work))


def _is_directory(path: Path, plan: SandboxPlan | None) -> bool:
    return path.is_dir() if plan is None else is_directory_inside(str(path), plan)


def _home_expanded(path: str, base: Mapping[str, str]) -> str:
    home = base.get("HOME", "~")
    return home + path[1:] if path == "~" or path.startswith("~/") else path


def _exit_code(end: Ending) -> tuple[str, ...]:
    if not end.whole:
        return ()
    if end.code - 128 in {*signal.Signals}:
        return (f"exit code {end.code}, which is {signal.Signals(end.code - 128).name}",)
    return (f"exit code {end.code}",)


def _told(text: str, notes: Iterable[str]) -> str:
    """Always text that can be encoded, whatever a directory is called."""
    lines = [text.rstrip("\n") or "(no output)", *(f"[{note}]" for note in notes)]
    return "\n".join(lines).encode("utf-8", errors="replace").decode()
