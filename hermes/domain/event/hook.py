"""Hooks: commands and URLs of the owner that are told of events, and that can block a tool call. Pure.

A hook gets JSON and may answer with JSON. The answer's form is that of other coding agents: exit code 2 or
`decision: block` blocks the call, `context` and `additionalContext` reach the model.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from hermes.domain.turn.tool_call import Gate, Verdict
from hermes.domain.values import dataclass, replace

PRE_TOOL: Final = "pre_tool_call"
POST_TOOL: Final = "post_tool_call"
COMMAND: Final = "command:"  # prefix of the events of slash commands
BLOCK_CODE: Final = 2  # exit code that blocks a call
MAX_REASON: Final = 1000  # characters
MAX_CONTEXT: Final = 10_000  # characters, for the model
HOOK_SCHEMA: Final = 1  # version of the JSON that hooks get


class HookEvent(StrEnum):
    """Event that a hook can be told of, besides slash commands."""

    SESSION_START = "session:start"
    SESSION_END = "session:end"
    SESSION_RESET = "session:reset"
    AGENT_START = "agent:start"
    AGENT_STEP = "agent:step"
    AGENT_END = "agent:end"
    DAEMON_START = "daemon:start"
    DAEMON_STOP = "daemon:stop"
    PRE_TOOL_CALL = PRE_TOOL
    POST_TOOL_CALL = POST_TOOL


# Names of other agents for the same events, as their hooks expect them.
_OTHER_NAMES: Final = {
    HookEvent.SESSION_START: "SessionStart",
    HookEvent.SESSION_END: "SessionEnd",
    HookEvent.AGENT_END: "Stop",
    HookEvent.PRE_TOOL_CALL: "PreToolUse",
    HookEvent.POST_TOOL_CALL: "PostToolUse",
}
ALIASES: Final = {
    "gateway:startup": HookEvent.DAEMON_START,
    "on_session_start": HookEvent.SESSION_START,
    "on_session_end": HookEvent.SESSION_END,
    "on_session_reset": HookEvent.SESSION_RESET,
    **{other: event for event, other in _OTHER_NAMES.items()},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    name: str  # for logs and the status
    on: tuple[str, ...]  # events; `command:*` and `session:*` stand for all of that kind
    command: str = ""  # line for /bin/sh
    argv: tuple[str, ...] = ()  # program and arguments, instead of a command
    url: str = ""  # gets the JSON as a POST request, instead of a command
    token_env: str = ""  # variable with the bearer token for the URL
    folder: str = ""  # where the command runs
    timeout_s: float = 10.0
    matcher: str = ""  # regular expression for whole names of tools; empty: every tool
    closed: bool = False  # a failure of the hook blocks the call
    handler: Callable[[str, Mapping[str, Any]], Any] | None = None  # of a plugin, instead of a command

    def takes(self, event: str) -> bool:
        return any(each == event or (each.endswith(":*") and event.startswith(each[:-1])) for each in self.on)

    def concerns(self, tool: str) -> bool:
        return self.matcher in ("", "*") or re.fullmatch(self.matcher, tool) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class HookAnswer:
    """Answer of a hook. A problem means that the hook failed."""

    verdict: Verdict = Verdict.ALLOW
    reason: str = ""
    context: str = ""  # for the model
    problem: str = ""


def known_event(name: str) -> str:
    """Return the event of this name. Raises ValueError."""
    if name in ALIASES:
        return ALIASES[name]
    kind, _, word = name.partition(":")
    kinds = {each.partition(":")[0] for each in HookEvent if ":" in each}
    if name in list(HookEvent) or (word == "*" and kind in kinds) or (name.startswith(COMMAND) and word):
        return name
    known = ", ".join([*HookEvent, f"{COMMAND}NAME", f"{COMMAND}*"])
    raise ValueError(f"unknown event {name[:40]!r}; known are {known}")


def payload(event: str, session: str, at: float, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON that a hook gets. The first names are those of other agents."""
    other = next((name for each, name in _OTHER_NAMES.items() if each == event), event)
    return {
        "version": HOOK_SCHEMA,
        "event": event,
        "hook_event_name": other,
        "session_id": session,
        "at": at,
        **facts,
    }


def read_answer(code: int, stdout: str, stderr: str) -> HookAnswer:
    """Return the answer of a command that ended. Output that is not JSON is ignored."""
    if code == BLOCK_CODE:
        return HookAnswer(verdict=Verdict.BLOCK, reason=_cut(stderr or stdout, MAX_REASON))
    if code:
        detail = " ".join(stderr.split())[:200]
        return HookAnswer(problem=f"exit code {code}" + (f": {detail}" if detail else ""))
    return read_json_answer(stdout)


def read_json_answer(text: str) -> HookAnswer:
    text = text.strip()
    if not text.startswith("{"):
        return HookAnswer()
    try:
        found = json.loads(text)
    except ValueError:
        return HookAnswer(problem="its answer is not valid JSON")
    specific = found.get("hookSpecificOutput")
    inner: Mapping[str, Any] = specific if isinstance(specific, dict) else {}
    word = inner.get("permissionDecision") or found.get("decision") or found.get("action") or ""
    reason = inner.get("permissionDecisionReason") or found.get("reason") or found.get("message") or ""
    context = inner.get("additionalContext") or found.get("context") or found.get("additionalContext") or ""
    verdicts = {"block": Verdict.BLOCK, "deny": Verdict.BLOCK, "ask": Verdict.ASK}
    if found.get("continue") is False and not word:
        word, reason = "block", reason or found.get("stopReason") or ""
    return HookAnswer(
        verdict=verdicts.get(str(word).lower(), Verdict.ALLOW),
        reason=_cut(str(reason), MAX_REASON),
        context=_cut(str(context), MAX_CONTEXT),
    )


def stricter(gate: Gate, hook: Hook, answer: HookAnswer) -> Gate:
    """Return the gate with the answer of a hook. A hook can only make it stricter."""
    if answer.problem and hook.closed:
        answer = HookAnswer(verdict=Verdict.BLOCK, reason=f"it failed ({answer.problem})")
    reason = f"hook {hook.name}: {answer.reason or 'no reason given'}"
    if answer.verdict is Verdict.BLOCK and gate.verdict is not Verdict.BLOCK:
        return Gate(verdict=Verdict.BLOCK, reason=reason, findings=(reason,), subjects=("",), context=gate.context)
    if answer.verdict is Verdict.ASK and gate.verdict is Verdict.ALLOW:
        return Gate(
            verdict=Verdict.ASK,
            reason=reason,
            once=True,
            findings=(reason,),
            subjects=("",),
            context=gate.context,
        )
    return gate


def with_context(gate: Gate, context: str) -> Gate:
    """Return the gate with one more text for the model."""
    return replace(gate, context="\n".join(filter(None, (gate.context, context)))[:MAX_CONTEXT])


def _cut(text: str, most: int) -> str:
    text = text.strip()
    return text if len(text) <= most else f"{text[:most]}…"
