"""Conversion of a model's tool calls to calls that the session can run, ask about or reject.

A call is stored in a form that every endpoint accepts. Ids are made unique and safe, because models repeat, omit or
invent them. Invalid names, and arguments that are not a JSON object, are replaced: sent back unchanged, they would
make an endpoint reject the whole conversation every time. Such a call is not run, and its result tells the model why.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loguru import logger

from hermes.agent.client_tools import ALL, ClientTools
from hermes.domain.access.question import is_long, whole_question
from hermes.domain.access.role import Role
from hermes.domain.text.visible_text import visible
from hermes.domain.turn.tool_call import Call, Verdict
from hermes.domain.values import dataclass, replace
from hermes.tools.clarify import CLARIFY
from hermes.tools.tool import ToolContext

if TYPE_CHECKING:
    from hermes.tools.toolbox import Proposal, Toolbox

MAX_SUMMARY = 200
MAX_QUICK = 20_000  # characters of all arguments
NO_ARGUMENTS = "{}"
TERMINAL = "terminal"
CUT_OFF = "{} was not run: your answer reached its length limit before this call was complete. Use smaller steps."
_SAFE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")
_MAIN_ARGUMENTS = ("command", "path", "url", "query", "pattern", "question", "goal")  # shown first in a summary


def with_safe_ids(tool_calls: Sequence[Mapping[str, Any]], turn: str, replies: int) -> list[dict[str, Any]]:
    taken: set[str] = set()
    made = []
    for number, call in enumerate(tool_calls):
        name = str(call["id"])
        if not _SAFE.fullmatch(name) or name in taken:
            name = f"call_{turn[:8]}_{replies}_{number}"
        taken.add(name)
        made.append({**call, "id": name})
    return made


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """The calls for the session, and their form in the transcript."""

    calls: tuple[Call, ...] = ()
    messages: tuple[dict[str, Any], ...] = ()
    handed: tuple[dict[str, Any], ...] = ()  # calls that the client runs


NOTHING = Proposed()


def is_quick(tool_calls: Sequence[Mapping[str, Any]], toolbox: Toolbox, platform: str, role: Role) -> bool:
    """Return whether the calls need no gate and have short arguments."""
    if sum(len(call["function"]["arguments"]) for call in tool_calls) > MAX_QUICK:
        return False
    tools = (toolbox.get(call["function"]["name"], platform, role) for call in tool_calls)
    return all(tool is not None and tool.decide is None for tool in tools)


def propose_all(
    tool_calls: Sequence[Mapping[str, Any]],
    toolbox: Toolbox,
    context: ToolContext,
    *,
    cut: bool,
    client: ClientTools = ALL,
) -> Proposed:
    """Check all calls. Blocking unless `is_quick`: gates read the disk. `cut`: the answer was too long."""
    calls, messages, handed = [], [], []
    for number, tool_call in enumerate(tool_calls, 1):
        arguments = tool_call["function"]["arguments"]
        whole = _is_object(arguments)
        if tool_call["function"]["name"] in client.names and (whole or not arguments.strip()):
            handed.append(_storable(tool_call, whole=whole))
            continue
        call = _proposed(tool_call, toolbox, context, client)
        if cut and number == len(tool_calls) and not whole:
            call = replace(call, problem=CUT_OFF.format(call.name))
        elif not whole and not call.problem and arguments.strip():
            call = replace(call, problem=f"{call.name} was not run: the arguments are not a valid JSON object")
        calls.append(call)
        messages.append(_storable(tool_call, whole=whole))
    return Proposed(calls=tuple(calls), messages=tuple(messages), handed=tuple(handed))


def _proposed(tool_call: Mapping[str, Any], toolbox: Toolbox, context: ToolContext, client: ClientTools) -> Call:
    name = str(tool_call["function"]["name"])
    if not client.hides(name):
        return propose(tool_call, toolbox, context)
    problem = "" if name in client.names else f"There is no tool {name} in this turn."
    return Call(id=tool_call["id"], name=name[:80], summary=name[:80], problem=problem)


def propose(tool_call: Mapping[str, Any], toolbox: Toolbox, context: ToolContext) -> Call:
    name, arguments = str(tool_call["function"]["name"]), str(tool_call["function"]["arguments"])
    proposal = toolbox.propose(name, arguments, replace(context, call=tool_call["id"]))
    call = Call(
        id=tool_call["id"],
        name=name[:80],
        summary=_summary(name, proposal),
        parallel=proposal.parallel,
        effect=proposal.effect,
        gate=proposal.gate,
        problem=proposal.problem,
        delegates=proposal.delegates,
    )
    if proposal.gate.verdict is Verdict.ASK:
        call = _with_whole(replace(call, whole=_whole(name, proposal)), context)
    if name != CLARIFY or proposal.problem:
        return call
    choices = tuple(str(choice)[:MAX_SUMMARY] for choice in proposal.arguments.get("choices") or ())
    return replace(call, question=str(proposal.arguments["question"])[:4000], choices=choices[:10])


def _storable(tool_call: Mapping[str, Any], *, whole: bool) -> dict[str, Any]:
    function = tool_call["function"]
    name = _UNFIT.sub("_", function["name"])[:64] or "unnamed"
    arguments = function["arguments"] if whole else NO_ARGUMENTS
    return {**tool_call, "function": {**function, "name": name, "arguments": arguments}}


def _is_object(arguments: str) -> bool:
    try:
        value = json.loads(arguments, parse_constant=_refuse)
        if "\\u" in arguments:
            json.dumps(value, ensure_ascii=False).encode()  # raises for a lone surrogate
        return isinstance(value, dict)
    except (ValueError, RecursionError):
        return False


def _refuse(constant: str) -> None:
    """Refuse NaN and Infinity, which only Python accepts."""
    raise ValueError(constant)


def _whole(name: str, proposal: Proposal) -> str:
    """Return everything that needs approval: the exact command, or all arguments."""
    arguments = proposal.arguments
    if set(arguments) == {"command"}:
        return str(arguments["command"])
    first = next((key for key in _MAIN_ARGUMENTS if key in arguments), "")
    lines = [
        str(arguments[first]) if name == TERMINAL and first else f"{name}: {arguments.get(first, '')}".rstrip(": ")
    ]
    lines += [f"{key}: {_shown(value)}" for key, value in arguments.items() if key != first]
    return "\n".join(lines)


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _with_whole(call: Call, context: ToolContext) -> Call:
    """Return the call, with its whole question in a file if that is too long for a chat message."""
    if not is_long(call):
        return call
    folder = context.folder / "outputs"
    path = folder / f"question-{call.id.replace(':', '_')}.txt"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(whole_question(call), encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        logger.warning("session {}: could not write the question file of {}: {}", context.session, call.id, error)
        return call  # the chat messages then contain the whole question
    return replace(call, whole_file=str(path))


def _summary(name: str, proposal: Proposal) -> str:
    """Return the call in one line, for people."""
    arguments = proposal.arguments
    main = next((str(arguments[key]) for key in _MAIN_ARGUMENTS if key in arguments), "")
    if "action" in arguments:  # the action alone does not describe the call
        main = " ".join(map(str, arguments.values()))
    text = main or (json.dumps(arguments, ensure_ascii=False) if arguments else "")
    line = visible(" ".join(f"{name}: {text}".split())) if text else name
    return line if len(line) <= MAX_SUMMARY else line[: MAX_SUMMARY - 1] + "…"
