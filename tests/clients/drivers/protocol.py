"""Line protocol between the judge and a driver: the driver is a program that uses one client.

The judge writes one `Ask` per line to the driver's standard input. The driver writes lines of JSON: `{"chunk": true}`
when the first text of a stream has arrived, then the `Answer`, or `{"error": …}`, or `{"limit": …}`. A driver keeps
the history of each conversation as programs that use the client usually do. It needs the standard library only.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, TextIO

PERSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    text: str
    conversation: str
    stream: bool = False
    headers: dict[str, str] = field(default_factory=dict)
    tools: tuple[str, ...] = ()
    structured: bool = False
    picture: str = ""  # a data URI
    continues: bool = False  # must reach its session without a header: by its history alone
    abandon: bool = False  # close the stream after its first text


@dataclass(slots=True, kw_only=True)
class Answer:
    text: str = ""
    runs: list[dict[str, Any]] = field(default_factory=list)  # what the client's own tools got
    parsed: dict[str, Any] | None = None


class ClientLimitError(Exception):
    """The client has no way to do this; the driver has checked that."""


class Connection:
    """The arguments of a driver, and its way to report the first text of a stream."""

    def __init__(self, output: TextIO) -> None:
        self.mode, self.base_url, self.key = sys.argv[1:4]
        self._output = output
        self._streaming = False

    def on_chunk(self) -> None:
        if not self._streaming:
            self._streaming = True
            self.write({"chunk": True})

    def write(self, line: dict[str, Any]) -> None:
        print(json.dumps(line), file=self._output, flush=True)

    def end_ask(self) -> None:
        self._streaming = False


class ClientTools:
    """The tools that run at the client. Every run is recorded."""

    def __init__(self) -> None:
        self.runs: list[dict[str, Any]] = []

    def terminal(self, command: str) -> str:
        """Run a command on the client's machine."""
        self.runs.append({"name": "terminal", "arguments": {"command": command}})
        return f"the client ran {command}"

    def get_weather(self, city: str) -> str:
        """Return the weather of a city."""
        self.runs.append({"name": "get_weather", "arguments": {"city": city}})
        return f"{city} is sunny"

    def run(self, name: str, arguments: str) -> str:
        tool: Callable[..., str] = getattr(self, name)
        return tool(**json.loads(arguments))

    def functions(self, names: tuple[str, ...]) -> list[Callable[..., str]]:
        return [getattr(self, name) for name in names]


def parameters(name: str) -> dict[str, Any]:
    """The JSON schema of a client tool's arguments."""
    field_name = {"terminal": "command", "get_weather": "city"}[name]
    return {
        "type": "object",
        "properties": {field_name: {"type": "string"}},
        "required": [field_name],
        "additionalProperties": False,
    }


def serve(make: Callable[[Connection], Callable[[Ask], Answer]]) -> None:
    """Answer every line until standard input ends. Prints of the client go to standard error."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    connection = Connection(output)
    answer = make(connection)
    connection.write({"ready": True})
    for line in sys.stdin:
        fields = json.loads(line)
        connection.write(_outcome(answer, Ask(**{**fields, "tools": tuple(fields["tools"])})))
        connection.end_ask()


def _outcome(answer: Callable[[Ask], Answer], ask: Ask) -> dict[str, Any]:
    try:
        return asdict(answer(ask))
    except ClientLimitError as limit:
        return {"limit": str(limit)}
    except Exception as error:  # noqa: BLE001 - the judge reports every failure of a client
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}"}
