"""Stub module for scripts: one typed function for each tool, made of the tools' schemas. Pure."""

from __future__ import annotations

import json
import keyword
from collections.abc import Iterable, Mapping
from typing import Any, Final

from hermes.tools.tool import Tool

NAME: Final = "hermes_tools"
LEFT_OUT: Final = frozenset({"background", "pty", "notify", "watch"})  # of terminal: a script has no use for them
_TYPES: Final = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}

_HEAD: Final = '''\
"""Tools of Hermes, for this script. Each function returns the tool's result as text, or raises ToolCallError."""

from __future__ import annotations

import json as _json
import os as _os
import socket as _socket
import threading as _threading


class ToolCallError(Exception):
    """The call failed or was refused. The text is the tool's result."""


_lock = _threading.Lock()
_channel = None


def _call(tool, **arguments):
    global _channel
    with _lock:
        if _channel is None:
            connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
            connection.connect(_os.path.join(_os.path.dirname(_os.path.abspath(__file__)), "socket"))
            _channel = connection.makefile("rwb")
        given = {name: value for name, value in arguments.items() if value is not None}
        _channel.write(_json.dumps({"tool": tool, "arguments": given}).encode() + b"\\n")
        _channel.flush()
        line = _channel.readline()
    if not line:
        raise ToolCallError("Hermes has closed the connection")
    answer = _json.loads(line)
    if not answer["ok"]:
        raise ToolCallError(answer["text"])
    return answer["text"]
'''


def stub_of(tools: Iterable[Tool]) -> str:
    """Return the source of the module."""
    return "\n\n".join([_HEAD, *map(_function, tools)]) + "\n"


def _function(tool: Tool) -> str:
    properties: Mapping[str, Any] = tool.parameters["properties"]
    required = [name for name in tool.parameters.get("required", ()) if _usable(name)]
    optional = [name for name in properties if name not in required and _usable(name)]
    parameters = [f"{name}: {_type(properties[name])}" for name in required]
    parameters += [f"{name}: {_type(properties[name])} | None = None" for name in optional]
    passed = "".join(f", {name}={name}" for name in (*required, *optional))
    summary = tool.description.strip().split("\n")[0]
    return (
        f'def {tool.name}({", ".join(parameters)}) -> "str":\n'
        f"    {json.dumps(summary)}\n"
        f"    return _call({json.dumps(tool.name)}{passed})"
    )


def signatures(tools: Iterable[Tool]) -> str:
    """Return the functions in one line each, for the description of the tool."""
    return "\n".join(_function(tool).partition(":\n")[0].removeprefix("def ") for tool in tools)


def _usable(name: str) -> bool:
    return name.isidentifier() and not keyword.iskeyword(name) and name not in LEFT_OUT


def _type(schema: Mapping[str, Any]) -> str:
    """Return the type of a parameter. Annotations stay texts, so that every Python 3 can read them."""
    kind = schema.get("type")
    if kind == "array":
        return f"list[{_type(schema.get('items', {}))}]"
    return "dict" if kind == "object" else _TYPES.get(str(kind), "object")
