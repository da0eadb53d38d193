"""Tool `execute_code`: runs a Python script in the sandbox, which calls tools over a socket.

Only the script's output returns to the model, so many steps cost one model call. Each inner call is judged, asked for
and recorded like a call of the model.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, Protocol

from hermes.domain.errors import HermesError
from hermes.domain.turn.tool_call import Call, CallOutcome, Gate, Verdict
from hermes.domain.values import dataclass, replace
from hermes.ports.agent import InnerCalls
from hermes.sandbox.sandbox_plan import TMP
from hermes.system.crash_point import reach
from hermes.tools.script.channel import ScriptChannel
from hermes.tools.script.stub import NAME, stub_of
from hermes.tools.tool import Tool, ToolContext, ToolError, ToolResult, tool
from hermes.tools.toolbox import Toolbox

CALLABLE: Final = frozenset(
    {
        "web_search",
        "web_extract",
        "web_fetch",
        "read_file",
        "write_file",
        "search_files",
        "patch",
        "terminal",
        "session_search",
    }
)
MCP: Final = "mcp"  # begins the names of the toolsets of MCP servers
STDERR_BYTES: Final = 10_000
_REFUSED_ARGUMENTS: Final = ("background", "pty")


class ProgramRunner(Protocol):
    """Runs programs where the terminal tool runs its commands."""

    @property
    def boxed(self) -> bool: ...
    async def run_program(
        self, context: ToolContext, command: str, *, limit_s: float, timed: Callable[[asyncio.Timeout], None]
    ) -> ToolResult: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptSettings:
    timeout_s: float = 300.0
    max_calls: int = 50


Propose = Callable[[Mapping[str, Any], Toolbox, ToolContext], Call]
Judge = Callable[[Mapping[str, Any], ToolContext], Gate]  # of the terminal tool


def execute_code_tool(
    runner: ProgramRunner,
    *,
    toolbox: Callable[[], Toolbox],
    propose: Propose,
    judge: Judge,
    inner: InnerCalls,
    settings: ScriptSettings,
) -> Tool:
    def decide(arguments: Mapping[str, Any], context: ToolContext) -> Gate:
        """Judge the script like the same code on a command line."""
        return judge({"command": shlex.join(("python3", "-c", arguments["code"]))}, context)

    @tool("code_execution", decide=decide)
    async def execute_code(
        context: ToolContext, *, code: Annotated[str, "Python source; print what you need to know"]
    ) -> ToolResult:
        """Run a Python script that calls your tools, and return what it prints.

        Use it for three or more tool calls with logic between them: loops, filters, many files. `from hermes_tools
        import read_file, terminal, ...` gives web_search, web_fetch, read_file, write_file, search_files, patch,
        terminal, session_search and the tools of MCP servers, as far as you have them, with the same parameters.
        Each returns the result as text, or raises ToolCallError. The results do not enter your context: print a short
        summary. The script runs in the sandbox with the standard library. It has a limit of time and of calls.
        """
        if "\0" in code or not code.strip():
            raise ToolError("The script was not run: it is empty or contains a NUL character.")
        script = _Script(context, toolbox(), propose=propose, inner=inner, settings=settings)
        return await script.run(runner, code)

    return execute_code


class _Script:
    def __init__(
        self,
        context: ToolContext,
        toolbox: Toolbox,
        *,
        propose: Propose,
        inner: InnerCalls,
        settings: ScriptSettings,
    ) -> None:
        self._context = context
        self._toolbox = toolbox
        self._propose = propose
        self._inner = inner
        self._settings = settings
        self._made: Counter[str] = Counter()
        self._limit: asyncio.Timeout | None = None
        self._left_s = 0.0
        sets = toolbox.toolsets(context.platform, context.role, context.only)
        self._names = [name for name, of in sets.items() if name in CALLABLE or of.startswith(MCP)]

    async def run(self, runner: ProgramRunner, code: str) -> ToolResult:
        context = self._context
        tools = (self._toolbox.get(name, context.platform, context.role, context.only) for name in self._names)
        files = {f"{NAME}.py": stub_of(each for each in tools if each is not None), "script.py": code}
        channel = ScriptChannel(context.folder / "tmp", self._call)
        try:
            await channel.open(files)
            place = f"{TMP if runner.boxed else context.folder / 'tmp'}/{channel.name}"
            paths = shlex.quote(f"{place}/script.py"), shlex.quote(f"{place}/stderr")
            command = f"exec python3 -B -u {paths[0]} 2>{paths[1]}"
            result = await runner.run_program(
                context, command, limit_s=self._settings.timeout_s, timed=self._take_limit
            )
            errors, size = await asyncio.to_thread(channel.read, "stderr", STDERR_BYTES)
        except OSError as error:
            raise ToolError(f"The script was not run: {error.strerror or error}") from None
        finally:
            await channel.close()
        return replace(result, text=self._report(result.text, errors, size))

    def _report(self, text: str, errors: str, size: int) -> str:
        parts = [text]
        if errors.strip():
            cut = f" (the last {STDERR_BYTES:,} of {size:,} bytes)" if size > STDERR_BYTES else ""
            parts.append(f"[stderr{cut}]\n{errors.rstrip()}")
        if self._made:
            calls = ", ".join(f"{name} {count}" for name, count in self._made.items())
            parts.append(f"[tool calls: {calls}]")
        return "\n".join(parts)

    # ------------------------------------------------------------ one call

    async def _call(self, name: str, arguments: dict[str, Any]) -> tuple[bool, str]:
        """Run a call of the script. The session records and decides it first."""
        if name not in self._names:
            return False, f"The tool {name[:80]} is not available to scripts here."
        if refused := next((each for each in _REFUSED_ARGUMENTS if arguments.get(each)), ""):
            return False, f"{name} was not run: {refused} is not available to scripts."
        if self._made.total() >= self._settings.max_calls:
            return False, f"{name} was not run: a script makes at most {self._settings.max_calls} calls."
        self._made[name] += 1
        number, text = self._made.total(), json.dumps(arguments, ensure_ascii=False)
        context = replace(self._context, call=f"{self._context.call}_{number}")
        call = await self._proposed(f"{self._context.call_id[:56]}.{number}", name, text, context)
        try:
            return await self._run(call, text, context)
        except HermesError as error:
            return False, f"{name} was not run: {error}"

    async def _proposed(self, name: str, tool_name: str, arguments: str, context: ToolContext) -> Call:
        wanted = {"id": name, "function": {"name": tool_name, "arguments": arguments}}
        call = await asyncio.to_thread(self._propose, wanted, self._toolbox, context)
        return replace(call, within=self._context.call_id, delegates=0)

    async def _run(self, call: Call, arguments: str, context: ToolContext) -> tuple[bool, str]:
        session, turn = context.session, context.turn
        begin = self._inner.begin(session, turn, call, arguments, platform=context.platform, waits=self._pause)
        if refusal := await begin:
            return False, refusal
        began = time.monotonic()
        again = await self._proposed(call.id, call.name, arguments, context)  # the wait may have been long
        permitted = context.permitted | set(call.gate.rules)
        if again.problem or not _still_allowed(again.gate, call.gate, permitted):
            result = ToolResult(text=again.problem or f"Not run: {again.gate.reason}.", ok=False)
        else:
            context = replace(context, permitted=frozenset(permitted))
            checked = self._toolbox.check(call.name, arguments, context)
            reach("script: about to call")
            result = await self._toolbox.run(call.name, checked.arguments, context)
            reach("script: called")
        outcome = CallOutcome.OK if result.ok else CallOutcome.ERROR
        took_s = time.monotonic() - began
        text = await self._inner.end(
            session,
            turn,
            call,
            arguments,
            platform=context.platform,
            text=result.text,
            outcome=outcome,
            took_s=took_s,
        )
        return result.ok, text

    # ------------------------------------------------------------ time limit

    def _take_limit(self, limit: asyncio.Timeout) -> None:
        self._limit = limit

    def _pause(self, waits: bool) -> None:
        """Stop the clock of the script while a person is asked."""
        limit, now = self._limit, asyncio.get_running_loop().time()
        if limit is None or limit.expired():
            return
        if waits:
            self._left_s = max(0.0, (limit.when() or now) - now)
            limit.reschedule(None)
        else:
            limit.reschedule(now + self._left_s)


def _still_allowed(now: Gate, before: Gate, permitted: frozenset[str] | set[str]) -> bool:
    """Return whether a call may run: an earlier one may have changed what it does since it was proposed."""
    if now.verdict is Verdict.ALLOW:
        return True
    return now.verdict is Verdict.ASK and before.verdict is Verdict.ASK and permitted.issuperset(now.rules)
