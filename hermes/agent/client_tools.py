"""Tools that a client brings with its request, and what it allows of the server's tools.

The model gets both. A call of a client's tool ends the turn; the client runs it and sends the result. A client's tool
hides the server's tool of the same name. A client that requires a call means its own tools: only those are offered.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hermes.domain.turn.tool_call import Call, CallState
from hermes.domain.values import dataclass

CLIENT_TOOLS = "client_tools"  # keys of the turn's options, under `hermes`
SERVER_TOOLS = "server_tools"
_NEED_TOOLS = ("tool_choice", "parallel_tool_calls")  # options that endpoints refuse without tools
_MARKS = (b'"client_tools"', b'"server_tools"', b'"tool_choice"', b'"parallel_tool_calls"')


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientTools:
    tools: tuple[Mapping[str, Any], ...] = ()  # as in a request to a model
    server: frozenset[str] | None = None  # tools of the server that the client allows; None: all
    choice: Any = None  # tool_choice

    @property
    def names(self) -> frozenset[str]:
        return frozenset(tool["function"]["name"] for tool in self.tools)

    @property
    def _requires(self) -> bool:
        return bool(self.tools) and self.choice not in (None, "auto", "none")

    def hides(self, name: str) -> bool:
        """Return whether a tool of the server is not offered."""
        return name in self.names or (self.server is not None and name not in self.server)

    def offered(self, schemas: bytes, *, first: bool) -> bytes:
        """Return the tools of a model request. `schemas` are the server's; `first`: of the turn's model calls."""
        if not self.tools and self.server is None:
            return schemas
        own = [] if first and self._requires else [each for each in json.loads(schemas) if not self._hidden(each)]
        return json.dumps([*own, *self.tools], ensure_ascii=False, separators=(",", ":")).encode()

    def _hidden(self, schema: Mapping[str, Any]) -> bool:
        return self.hides(schema["function"]["name"])


ALL = ClientTools()


def client_tools(options: bytes) -> ClientTools:
    """Return what the options of a turn say about tools."""
    if not any(mark in options for mark in _MARKS):
        return ALL
    fields = json.loads(options)
    ours = fields.get("hermes", {})
    server = ours.get(SERVER_TOOLS)
    return ClientTools(
        tools=tuple(ours.get(CLIENT_TOOLS, ())),
        server=None if server is None else frozenset(server),
        choice=fields.get("tool_choice"),
    )


def model_options(options: bytes, *, tools: bool, first: bool) -> bytes:
    """Return the options of one model call. A call is required only once in a turn, and never without tools."""
    if not any(mark in options for mark in _MARKS[2:]):
        return options
    fields = json.loads(options)
    if not tools:
        for name in _NEED_TOOLS:
            fields.pop(name, None)
    elif not first and fields.get("tool_choice") != "none":
        fields.pop("tool_choice", None)
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def handed_calls(tool_calls: Sequence[Mapping[str, Any]]) -> tuple[Call, ...]:
    return tuple(Call(id=call["id"], name=call["function"]["name"], state=CallState.HANDED) for call in tool_calls)
