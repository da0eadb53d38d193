"""Tools of a request: those of the client, those of the server that it allows, and the choice among them.

Both formats are read: `tools` of chat completions (and the older `functions`), and the flat ones of responses. Tools
of other types, which providers run themselves, are reported as ignored.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hermes.adapters.http.field import contradict
from hermes.domain.values import dataclass

NO_TOOLS_MODEL = "hermes:chat"  # name of a model without the server's tools
MAX_TOOLS = 512
NONE = "none"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CHOICES = ("none", "auto", "required")
_FUNCTION = "function"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolWish:
    options: Mapping[str, Any]  # for the model
    kept: Mapping[str, Any]  # for the turn, under `hermes`
    notice: str = ""


def read_tools(body: Mapping[str, Any], model: str) -> ToolWish:
    """Check the fields about tools of a chat completion, a response or a run."""
    tools, ignored = _tools(body)
    names = {tool["function"]["name"] for tool in tools}
    options: dict[str, Any] = {}
    given = body.get("tool_choice", body.get("function_call"))
    if given is not None and (choice := _choice(given, names)) is not None:
        options["tool_choice"] = choice
    if body.get("parallel_tool_calls") is not None:
        options["parallel_tool_calls"] = body["parallel_tool_calls"]
    server = _server_tools(body.get("hermes"), model)
    kept: dict[str, Any] = {"client_tools": tools} if tools else {}
    if server is not None:
        kept["server_tools"] = server
    types = ", ".join(sorted(ignored))
    return ToolWish(
        options=options, kept=kept, notice=f"Tools of these types were ignored: {types}." if types else ""
    )


def _tools(body: Mapping[str, Any]) -> tuple[list[Mapping[str, Any]], set[str]]:
    """Return the client's tools in the format of chat completions, and the types of others."""
    tools: list[Mapping[str, Any]] = []
    ignored: set[str] = set()
    for param, given in (("tools", body.get("tools")), ("functions", body.get("functions"))):
        for index, value in enumerate(_listed(given, param)):
            place = f"{param}[{index}]"
            kind = value.get("type") if param == "tools" else _FUNCTION
            if not isinstance(kind, str):
                contradict(f"{place}.type", f"{place}.type must be a string.")
            if kind == _FUNCTION:
                tools.append(_tool(value, place))
            else:
                ignored.add(kind[:40])
    names = [tool["function"]["name"] for tool in tools]
    if len(set(names)) < len(names):
        contradict("tools", "Two tools have the same name.")
    return tools, ignored


def _listed(value: Any, param: str) -> Sequence[Mapping[str, Any]]:
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > MAX_TOOLS or not all(isinstance(each, dict) for each in value):
        contradict(param, f"{param} must be a list of at most {MAX_TOOLS} objects.")
    listed: Sequence[Mapping[str, Any]] = value
    return listed


def _tool(value: Mapping[str, Any], param: str) -> Mapping[str, Any]:
    nested = value.get(_FUNCTION)
    function = nested if isinstance(nested, dict) else value
    name = function.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        contradict(f"{param}.name", f"{param}.name must be 1 to 64 letters, digits, _ and -.")
    made: dict[str, Any] = {"name": name}
    for field, kind in (("description", str), ("parameters", dict), ("strict", bool)):
        if (given := function.get(field)) is not None:
            if not isinstance(given, kind):
                contradict(f"{param}.{field}", f"{param}.{field} must be of the type {kind.__name__}.")
            made[field] = given
    return {"type": _FUNCTION, _FUNCTION: made}


def _choice(value: Any, names: set[str]) -> Any:
    """Return tool_choice in the format of chat completions; None if it says nothing."""
    if value in _CHOICES:
        if value == "required" and not names:
            contradict("tool_choice", "tool_choice is required, and the request has no tools of its own.")
        return value if names or value == NONE else None
    if isinstance(value, dict) and value.get("type") == "allowed_tools":
        return _choice(value.get("mode", "auto"), names)
    function = value.get(_FUNCTION, value) if isinstance(value, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or name not in names:
        contradict("tool_choice", "tool_choice must be none, auto, required or a function of this request.")
    return {"type": _FUNCTION, _FUNCTION: {"name": name}}


def _server_tools(ours: Any, model: str) -> list[str] | None:
    """Return the server's tools that the request allows; None: all."""
    wanted = ours.get("tools") if isinstance(ours, dict) else None
    if ours is not None and not isinstance(ours, dict):
        contradict("hermes", "hermes must be an object.")
    if wanted is None:
        return [] if model == NO_TOOLS_MODEL else None
    if wanted == NONE:
        return []
    if not isinstance(wanted, list) or not all(isinstance(name, str) for name in wanted):
        contradict("hermes.tools", 'hermes.tools must be "none" or a list of names.')
    return [] if model == NO_TOOLS_MODEL else wanted
