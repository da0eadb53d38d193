"""Terminal tool: run a shell command and return its output and exit code.

Commands run in a sandbox if one works (`hermes/sandbox/`). An argument of the call requests to run outside it, and
the owner is asked each time. The directory and exported variables are saved for the conversation's next command
(`shell_state`), except those of a command outside the sandbox. All processes of a command end with it; `background`
starts commands that stay. Standard input is empty.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Protocol

from hermes.domain.access.role import Role
from hermes.domain.process.sandbox_launch import Box
from hermes.domain.turn.tool_call import Gate, Verdict
from hermes.domain.values import replace
from hermes.processes.child import ChildLimits, ChildProcess, spawn
from hermes.processes.command_output import CommandOutput, LineFeed
from hermes.sandbox.boxed_child import SandboxFailedError, spawn_boxed
from hermes.sandbox.cgroup import Cgroups, ControlGroup, held_group
from hermes.sandbox.network.host_grants import joined_gate, network_gate, requested_hosts
from hermes.sandbox.network.network import ProxyAttachment, SandboxNetwork
from hermes.sandbox.sandbox import Sandbox
from hermes.tools.terminal.background_command import BackgroundCommand
from hermes.tools.terminal.foreground import Ending, run_to_end
from hermes.tools.terminal.result_text import exit_code_notes, result_text, timeout_notes
from hermes.tools.terminal.shell_state import ShellState, open_capture, read_capture, save, shell_argv
from hermes.tools.terminal.start import CommandStart, StartPlanner
from hermes.tools.terminal.terminal_settings import (
    TerminalSettings,
    check_command,
    checked_timeout,
    offered_parameters,
)
from hermes.tools.tool import Tool, ToolContext, ToolError, ToolResult, tool

OUTSIDE_SANDBOX: Final = "outside-sandbox"  # the rule that a person allows
_TIMEOUT_IGNORED: Final = "timeout is ignored for a background command: it runs until it ends or is killed"
_LEAVES_SANDBOX: Final = "runs outside the sandbox, with all permissions of this user"

StartBackground = Callable[[BackgroundCommand], Awaitable[str]]


class Decide(Protocol):
    def __call__(self, command: str, cwd: str, *, work: str, inside: bool, conversation_directory: bool) -> Gate:
        """Judge a command.

        `cwd` is empty if the command has none, `work` is the working directory. `inside`: it runs in the sandbox.
        """


def terminal_tool(
    settings: TerminalSettings,
    decide: Decide,
    background: StartBackground | None = None,
    sandbox: Sandbox | None = None,
    network: SandboxNetwork | None = None,
) -> Tool:
    """Return the tool. Without `network`, sandboxes have none."""
    shell = CommandRunner(settings, background, sandbox, network)

    def gate(arguments: Mapping[str, Any], context: ToolContext) -> Gate:
        outside = bool(arguments.get("outside_sandbox"))
        inside = shell.boxed and not outside
        cwd = shell.directory(context, arguments.get("workdir", ""), inside=inside)
        work = settings.work_of(context.folder, context.role)
        own = Path(work).parent == context.folder
        found = decide(arguments["command"], cwd, work=work, inside=inside, conversation_directory=own)
        if shell.boxed and outside:
            return _outside_gate(found)
        return joined_gate(found, shell.network_gate(arguments.get("network_hosts") or (), context.role))

    made = tool("terminal", decide=gate, available=_unavailable_because)(shell.terminal)
    return replace(
        made,
        parameters=offered_parameters(made.parameters, settings, boxed=shell.boxed, network=network is not None),
        requires=(("background", "process"),),
    )


def _outside_gate(gate: Gate) -> Gate:
    """Return the gate of a command outside the sandbox: it needs approval each time."""
    if gate.verdict is Verdict.BLOCK:
        return gate
    return Gate(
        verdict=Verdict.ASK,
        reason="; ".join(filter(None, (_LEAVES_SANDBOX, gate.reason))),
        rules=(OUTSIDE_SANDBOX, *gate.rules),
        once=True,
        findings=(_LEAVES_SANDBOX, *(gate.findings or filter(None, (gate.reason,)))),
        subjects=("", *gate.subjects) if gate.subjects else (),
    )


def _unavailable_because() -> str:
    return "" if hasattr(os, "memfd_create") else "it needs Linux"


class CommandRunner:
    """Runs commands for the terminal tool, and programs for scripts."""

    def __init__(
        self,
        settings: TerminalSettings,
        background: StartBackground | None = None,
        sandbox: Sandbox | None = None,
        network: SandboxNetwork | None = None,
    ) -> None:
        self._network = network
        self._settings = settings
        self._background = background
        self._sandbox = sandbox if sandbox is not None and sandbox.works else None
        self._planner = StartPlanner(settings, self._sandbox, network=network is not None)

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
            raise ToolError("This sandbox has no network, so no host can be allowed.")
        return network_gate(hosts, self._network.hosts)

    def directory(self, context: ToolContext, workdir: str, *, inside: bool) -> str:
        """Return the directory that a command would run in; empty if it cannot run. Blocking."""
        try:
            return self._planner.start(context, workdir, inside=inside).cwd
        except ToolError:
            return ""

    async def terminal(
        self,
        context: ToolContext,
        *,
        command: Annotated[str, "bash command line; may have several lines"],
        timeout: float | None = None,  # noqa: ASYNC109 - for the model; described by `offered_parameters`
        workdir: Annotated[str, "directory for this command only; default: where the last command ended"] = "",
        pty: Annotated[bool, "run in a pseudo-terminal, for programs that require one"] = False,
        background: Annotated[bool, "run in the background, for servers and long work; returns immediately"] = False,
        notify: Annotated[bool, "with background: send you a message when the command ends"] = False,
        watch: Annotated[
            list[str] | None,
            "with background: send you output lines that contain one of these texts (case-sensitive)",
        ] = None,
        outside_sandbox: Annotated[
            bool, "run outside the sandbox with all permissions of the owner's user; the owner is asked each time"
        ] = False,
        network_hosts: Annotated[  # noqa: ARG002
            list[str] | None, "refused hosts that this command must reach; the owner is asked for permission"
        ] = None,  # judged by the gate; allowed hosts are in `context.permitted`
    ) -> ToolResult:
        """Run a shell command. Returns its output (stdout and stderr) and exit code.

        The directory (cd) and exported variables are kept for your next command. Standard input is empty: use flags
        that answer prompts (-y). Processes started with & are killed when the command ends, also in a background
        command. To keep a process running use background=true, without & or nohup, and manage it with the process
        tool. Prefer the file tools for reading, searching and editing files.
        """
        check_command(command)
        limit_s = checked_timeout(timeout, self._settings, background=self._background is not None)
        start = await asyncio.to_thread(
            self._planner.start, context, workdir, inside=self.boxed and not outside_sandbox
        )
        if background:
            text = await self._start_background(
                context, command, start, pty=pty, notify=notify, watch=tuple(watch or ())
            )
            return ToolResult(text=text if timeout is None else f"{text}\n[{_TIMEOUT_IGNORED}]")
        if notify or watch:
            raise ToolError("The command was not run: notify and watch need background=true.")
        saves = not (self.boxed and outside_sandbox)
        return await self._run(context, command, start, pty=pty, limit_s=limit_s, saves=saves, stay=bool(workdir))

    async def _run(
        self,
        context: ToolContext,
        command: str,
        start: CommandStart,
        *,
        pty: bool,
        limit_s: float,
        saves: bool,
        stay: bool,
        timed: Callable[[asyncio.Timeout], None] = lambda _: None,
    ) -> ToolResult:
        """Run in the foreground. `saves`: keep the shell's state. `stay`: keep the directory from before."""
        output = CommandOutput(
            context.folder / "outputs",
            context.call,
            kept_bytes=self._settings.kept_bytes,
            stored_max_bytes=self._settings.stored_max_bytes,
        )
        attached: list[ProxyAttachment] = []
        async with held_group(self._cgroups(start)) as group:
            with open_capture() as capture:
                attach = self._attach(context, start, attached)
                child = await self._spawn(command, start, capture, pty=pty, group=group, attach=attach)
                end = await self._ended(context, child, output, attached, pty=pty, limit_s=limit_s, timed=timed)
                kept = await self._keep(context.folder, start, capture, stay=stay) if end.whole and saves else ()
            killed = await self._memory_notes(group)
        advice = timeout_notes(end, self._settings, background=self._background is not None)
        refused = filter(None, (each.note() for each in attached))
        notes = [*start.notes, *end.notes, *killed, *advice, *kept, *refused, *exit_code_notes(end)]
        shown = output.text(terminal=pty)
        return ToolResult(
            text=result_text(shown, notes),
            ok=end.whole and end.code == 0,
            excerpt=output.is_cut,
            output=shown,
            code=end.code if end.whole else None,
        )

    async def _ended(
        self,
        context: ToolContext,
        child: ChildProcess,
        output: CommandOutput,
        attached: list[ProxyAttachment],
        *,
        pty: bool,
        limit_s: float,
        timed: Callable[[asyncio.Timeout], None],
    ) -> Ending:
        """Wait for the command's end and release what it used."""
        feed = LineFeed(context.progress, terminal=pty)
        most = self._settings.limits.processes
        try:
            return await run_to_end(child, output, feed, limit_s=limit_s, processes_max=most, timed=timed)
        except SandboxFailedError:
            reason = output.text(terminal=pty).strip()
            raise ToolError(f"The command was not run: could not start the sandbox: {reason}") from None
        finally:
            feed.close()
            child.close()
            for each in attached:
                await each.close()

    async def run_program(
        self, context: ToolContext, command: str, *, limit_s: float, timed: Callable[[asyncio.Timeout], None]
    ) -> ToolResult:
        """Run a command of ours like one of the model, without keeping the shell's state."""
        start = await asyncio.to_thread(self._planner.start, context, "", inside=self.boxed)
        return await self._run(
            context, command, start, pty=False, limit_s=limit_s, saves=False, stay=True, timed=timed
        )

    async def _start_background(
        self,
        context: ToolContext,
        command: str,
        start: CommandStart,
        *,
        pty: bool,
        notify: bool,
        watch: tuple[str, ...],
    ) -> str:
        if self._background is None:
            raise ToolError(
                "The command was not run: background processes are not available here. Run it in the foreground "
                f"with a longer timeout (maximum {self._settings.timeout_max_s:g} s), in steps if necessary."
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
            return result_text(await self._background(asked), start.notes)

    def _attach(
        self, context: ToolContext, start: CommandStart, attached: list[ProxyAttachment]
    ) -> Callable[[int], Awaitable[None]] | None:
        """Return the function that gives the sandbox its network before the command starts."""
        network = self._network
        if network is None or start.plan is None or not start.plan.network:
            return None

        async def attach(init: int) -> None:
            attached.append(await network.attach(init, permitted=context.permitted))

        return attach

    async def _spawn(
        self,
        command: str,
        start: CommandStart,
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
            raise ToolError(f"The command was not run: could not start the sandbox: {error}") from error
        except OSError as error:
            raise ToolError(
                f"The command was not run: could not start it in {start.cwd}: {error.strerror}"
            ) from error

    def _box(self, start: CommandStart, group: ControlGroup | None, *, pty: bool) -> Box | None:
        """Blocking."""
        if start.plan is None or self._sandbox is None:
            return None
        box = self._sandbox.box(start.plan, terminal=pty)
        return box if group is None else group.entered_by(box)

    def _cgroups(self, start: CommandStart) -> Cgroups | None:
        return None if start.plan is None or self._sandbox is None else self._sandbox.cgroups

    async def _memory_notes(self, group: ControlGroup | None) -> tuple[str, ...]:
        if group is None or not await asyncio.to_thread(group.ran_out_of_memory):
            return ()
        return (f"killed: the command used more than the allowed {self._settings.memory_bytes >> 20} MB of memory",)

    def _limits(self, start: CommandStart) -> ChildLimits:
        """Return the limits. In a sandbox the kernel counts only its processes, so it can limit their number."""
        limits = self._settings.limits
        if start.plan is None:
            return limits
        return replace(limits, user_processes=limits.processes, data_bytes=self._settings.memory_bytes)

    async def _keep(self, folder: Path, start: CommandStart, capture: int, *, stay: bool) -> tuple[str, ...]:
        """Save the shell's state for the next command. With `stay`, keep the directory from before."""
        try:
            state = await asyncio.to_thread(self._save, folder, start, capture, stay=stay)
        except OSError as error:
            return (f"could not save the directory and variables: {error.strerror}",)
        if state is None:
            return ("the shell did not report its directory and variables; the previous ones are kept",)
        return ()

    def _save(self, folder: Path, start: CommandStart, capture: int, *, stay: bool) -> ShellState | None:
        """Blocking."""
        left = read_capture(capture, start.base)
        if left is None:
            return None
        state = ShellState(cwd=start.state.cwd if stay else left.cwd, changed=left.changed)
        if state != start.state:
            save(folder, state)
        return state
