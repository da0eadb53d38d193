"""Toolbox: all tools, which of them each platform has, and the one way to run them.

`propose` checks a call's arguments and asks its gate, without side effects. Problems are reported to the model so
that it can correct the call. `disabled` overrides every toolset. A platform's tools do not change while the daemon
runs, because the model's prefix cache depends on them; only those of MCP servers do, when a server changes them.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, TypeAlias

from loguru import logger

from hermes.domain.access.api_key import is_named_key, surface_of
from hermes.domain.access.role import Role
from hermes.domain.errors import ConfigError
from hermes.domain.mcp.tool_name import is_mcp_name
from hermes.domain.turn.tool_call import Effect, Gate
from hermes.domain.values import dataclass, replace
from hermes.tools.terminal.command_output import OutputLimits, Redact, fit
from hermes.tools.tool import Tool, ToolContext, ToolError, ToolResult
from hermes.tools.tool_schema import ArgumentError, check_arguments

DEFAULT = "default"  # entry for platforms without their own
GUEST = "guest"  # entry that limits guests on every platform
PROCESS = "process"  # toolset that named API keys never get
_ALLOWED = Gate()
Only: TypeAlias = tuple[str, ...] | None  # names of the only tools of a child session; None: no such limit
Before: TypeAlias = Callable[[str, ToolContext], Awaitable[None]]
_PROBLEM_CHARS = 300  # of an unexpected error, for the model


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A checked tool call; `problem` is set if it must not run."""

    arguments: dict[str, Any]
    problem: str = ""
    parallel: bool = False
    effect: Effect = Effect.PURE
    gate: Gate = _ALLOWED
    delegates: int = 0  # child sessions to start with the call


class Toolbox:
    def __init__(
        self,
        tools: tuple[Tool, ...],
        *,
        toolsets: Mapping[str, Sequence[str]],
        disabled: Sequence[str] = (),
        unprotected: Collection[str] = (),
        limits: OutputLimits = OutputLimits(),  # noqa: B008 - a value
        redact: Redact = str,
        before: Before | None = None,
    ) -> None:
        self._before = before  # runs before each call
        self._tools = {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}
        assert len(self._tools) == len(tools), "two tools have the same name"
        self._toolsets = {platform: frozenset(names) for platform, names in toolsets.items()}
        self._disabled = frozenset(disabled)
        self._unprotected = frozenset(unprotected)  # only for roles that can approve
        self._limits = limits
        self._redact = redact
        self._missing = {tool.name: why for tool in tools if (why := tool.available())}
        self._fixed = self._tools
        self._schemas: dict[tuple[str, Role, Only], bytes] = {}
        for setting, names in [*toolsets.items(), ("disabled", disabled)]:
            self._check_known(setting, names)

    def names(self, platform: str, role: Role = Role.OWNER, only: Only = None) -> tuple[str, ...]:
        return tuple(name for name in self._tools if self.get(name, platform, role, only))

    def offered(self, platform: str, role: Role = Role.OWNER, only: Only = None) -> frozenset[str]:
        """Return the names of the tools and of their toolsets."""
        names = self.names(platform, role, only)
        return frozenset(names) | {self._tools[name].toolset for name in names}

    def toolsets(self, platform: str, role: Role = Role.OWNER, only: Only = None) -> dict[str, str]:
        """Return the names of the tools with that of their toolset."""
        return {name: self._tools[name].toolset for name in self.names(platform, role, only)}

    def schemas(self, platform: str, role: Role = Role.OWNER, only: Only = None) -> bytes:
        """Return the `tools` of a model request: a JSON array, with the same bytes each time."""
        key, schemas, known = (platform, role, only), self._schemas, self._tools
        if key not in schemas:
            tools = [_function(known[name]) for name in self.names(platform, role, only) if name in known]
            schemas[key] = json.dumps(tools, ensure_ascii=False, separators=(",", ":")).encode()
        return schemas[key]

    def offer(self, tools: Iterable[Tool]) -> None:
        """Replace the tools of MCP servers. They follow the others, so that their change costs less of a cache.

        Threads read while this runs: both maps are replaced, never changed.
        """
        added = {tool.name: tool for tool in sorted(tools, key=lambda tool: tool.name)}
        self._tools = {**self._fixed, **{name: tool for name, tool in added.items() if name not in self._fixed}}
        self._schemas = {}

    def get(self, name: str, platform: str, role: Role = Role.OWNER, only: Only = None) -> Tool | None:
        tool = self._tools.get(name) if only is None or name in only else None
        return tool if tool and name not in self._missing and self._enabled(tool, platform, role) else None

    def propose(self, name: str, arguments_json: str, context: ToolContext) -> Proposal:
        """Check a call and ask its gate, without running it. Gates read the disk: call this in a thread."""
        proposal = self.check(name, arguments_json, context)
        tool = self._get(name, context)
        if proposal.problem or tool is None or tool.decide is None:
            return proposal
        try:
            gate = tool.decide(proposal.arguments, context)
            return replace(proposal, gate=gate, delegates=tool.delegates(proposal.arguments))
        except ToolError as error:
            return Proposal(arguments={}, problem=f"{name} was not run: {error}")

    def check(self, name: str, arguments_json: str, context: ToolContext) -> Proposal:
        """Check a call's arguments only, without asking its gate."""
        tool = self._get(name, context)
        if tool is None:
            return Proposal(arguments={}, problem=self._absence(name, context))
        try:
            check = tool.check or partial(check_arguments, tool.parameters)
            arguments = check(_decoded(arguments_json))
        except ArgumentError as error:
            return Proposal(arguments={}, problem=f"{name} was not run: {error}")
        if problem := self._lacks(tool, arguments, context):
            return Proposal(arguments={}, problem=f"{name} was not run: {problem}")
        return Proposal(arguments=arguments, parallel=tool.parallel, effect=tool.effect)

    async def run(self, name: str, arguments: Mapping[str, Any], context: ToolContext) -> ToolResult:
        """Run a proposed and allowed call. Errors are returned as a result with `ok=False`."""
        tool = self._get(name, context)
        if tool is None:  # the settings changed since the proposal
            return ToolResult(text=self._absence(name, context), ok=False)
        if self._before is not None:
            await self._before(name, context)
        try:
            result = await tool.run(context, **arguments)
        except ToolError as error:
            result = ToolResult(text=str(error), ok=False)
        except Exception as error:  # noqa: BLE001 - the outermost call of a tool: the turn must go on
            logger.opt(exception=error).error(
                "session {}: tool {} failed in call {}", context.session, name, context.call
            )
            result = ToolResult(text=_unexpected(name, error), ok=False)
        if isinstance(result, str):
            result = ToolResult(text=result)
        text = await asyncio.to_thread(
            fit, result.text, context.folder, context.call, self._limits, self._redact, excerpt=result.excerpt
        )
        return replace(result, text=text)

    def _lacks(self, tool: Tool, arguments: Mapping[str, Any], context: ToolContext) -> str:
        """Return an error text if a parameter needs a tool that this person does not have; else empty."""
        if context.role.approves:
            return ""
        for parameter, needed in tool.requires:
            if arguments.get(parameter) and not self._get(needed, context):
                return f"{parameter} needs the tool {needed}, which this person may not use. Omit {parameter}."
        return ""

    def _enabled(self, tool: Tool, platform: str, role: Role) -> bool:
        enabled = self._toolsets.get(surface_of(platform), self._toolsets.get(DEFAULT, frozenset()))
        names = {tool.name, tool.toolset, *tool.also_in}
        if not role.includes(tool.least):
            return False
        if role is Role.GUEST and not names & self._toolsets.get(GUEST, frozenset()):
            return False
        if not role.approves and names & self._unprotected:
            return False
        if not role.approves and is_named_key(platform) and PROCESS in names:
            return False
        return bool(names & enabled) and not names & self._disabled

    def _get(self, name: str, context: ToolContext) -> Tool | None:
        return self.get(name, context.platform, context.role, context.only)

    def _absence(self, name: str, context: ToolContext) -> str:
        role = context.role
        if why := self._missing.get(name):
            return f"The tool {name} is not available on this machine: {why}."
        known = self.names(context.platform, role, context.only)
        if not role.approves and name in self._tools and self._unprotected & {name, self._tools[name].toolset}:
            return f"The tool {name} is for the owner and admins only, because this machine has no working sandbox."
        if name in self._tools:
            return f"The tool {name} is not enabled here. Enabled tools: {', '.join(known) or 'none'}."
        near = get_close_matches(name, known, n=1)
        hint = f"Did you mean {near[0]}?" if near else f"Available tools: {', '.join(known) or 'none'}."
        return f"Unknown tool {name[:80]!r}. {hint}"

    def _check_known(self, setting: str, names: Iterable[str]) -> None:
        known = {name for tool in self._tools.values() for name in (tool.name, tool.toolset)}
        for name in names:
            if name not in known and not is_mcp_name(name):  # servers are asked for their tools later
                near = get_close_matches(name, known, n=1)
                hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(sorted(known))}"
                raise ConfigError(f"tools: {setting}: unknown toolset or tool {name!r}; {hint}")


def _function(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
    return {"type": "function", "function": function}


def _decoded(arguments_json: str) -> Any:
    try:
        arguments = json.loads(arguments_json.strip() or "{}")  # some models send nothing for no arguments
        json.dumps(arguments, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        where = f"at character {error.pos} of {len(arguments_json)}"
        raise ArgumentError(f"the arguments are not valid JSON: {error.msg} {where}") from None
    except UnicodeEncodeError:
        raise ArgumentError("the arguments contain a lone surrogate, which is not a character") from None
    except (ValueError, RecursionError):  # a number with thousands of digits; a thousand brackets
        raise ArgumentError("the arguments are nested too deeply or contain a number that is too long") from None
    return arguments


def _unexpected(name: str, error: Exception) -> str:
    detail = ": ".join(filter(None, (type(error).__name__, " ".join(str(error).split())[:_PROBLEM_CHARS])))
    return f"{name} failed unexpectedly ({detail}). It may have done part of its work."
