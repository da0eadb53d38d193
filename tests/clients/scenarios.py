"""The twelve scenarios. Each is the same for every client and judges daemon, model and client together."""

from __future__ import annotations

import json
import struct
import zlib
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients.driver_process import DriverError, DriverProcess
from tests.clients.drivers.protocol import Answer, Ask
from tests.support.client_model import PERSON, ClientModel, pictures
from tests.support.daemon_process import DaemonProcess
from tests.support.waiting import eventually


@dataclass(slots=True, kw_only=True)
class Stage:
    """One client before a daemon and its model, for one scenario."""

    name: str  # of the scenario, and of its conversation
    daemon: DaemonProcess
    model: ClientModel
    driver: DriverProcess
    folder: Path
    known: set[str] = field(default_factory=set)  # sessions that were there before

    def __post_init__(self) -> None:
        self.known = set(self.sessions())

    def ask(self, text: str, **fields: Any) -> Answer:
        return self.driver.ask(self.request(text, **fields))

    def request(self, text: str, **fields: Any) -> Ask:
        return Ask(text=text, **{"conversation": self.name, **fields})

    def sessions(self) -> list[str]:
        listed = self.daemon.request("GET", "/api/sessions?limit=200").json()["sessions"]
        return [session["id"] for session in listed]

    def new_sessions(self) -> list[str]:
        return [session for session in self.sessions() if session not in self.known]

    def session(self, session: str) -> Any:
        return self.daemon.request("GET", f"/api/sessions/{session}").json()["session"]

    def stored_texts(self, session: str, role: str) -> list[str]:
        page = self.daemon.request("GET", f"/api/sessions/{session}/messages?limit=500").json()
        return [message["content"] or "" for message in page["messages"] if message["role"] == role]


def plain(stage: Stage) -> None:
    """One question, one answer."""
    _same(stage.ask("[[say hello there]]").text, "hello there")


def stream(stage: Stage) -> None:
    """The first text arrives while the model still writes, and the whole text is complete."""
    text = f"one two three four of {stage.name}"
    stage.driver.begin(stage.request(f"[[slow {text}]]", stream=True))
    stage.driver.first_chunk()
    stage.model.release()
    _same(stage.driver.answer().text, text)


def multi_turn(stage: Stage) -> None:
    """Three messages without a session header are one session."""
    for number in range(3):
        _same(stage.ask(f"[[say turn {number}]]", continues=number > 0).text, f"turn {number}")
    _same(stage.model.user_texts(), ["say turn 0", "say turn 1", "say turn 2"])
    _same(len(stage.new_sessions()), 1, "sessions")


def session_header(stage: Stage) -> None:
    """With `X-Hermes-Session-Id` the session has every message once."""
    headers = {"X-Hermes-Session-Id": f"matrix-{stage.name}"}
    for number in range(3):
        _same(stage.ask(f"[[say part {number}]]", headers=headers).text, f"part {number}")
    _same(stage.new_sessions(), [headers["X-Hermes-Session-Id"]], "sessions")
    _same(stage.model.user_texts(), ["say part 0", "say part 1", "say part 2"])
    stage.ask("[[say part 3]]", headers=headers, conversation=f"{stage.name}-elsewhere")
    _same(stage.model.user_texts(), [f"say part {number}" for number in range(4)])


def server_tool(stage: Stage) -> None:
    """A tool of the server runs once, on the server, in plain and streamed answers."""
    for streamed in (False, True):
        effect = stage.folder / f"server-{streamed}"
        answer = stage.ask(_call("terminal", command=f"echo ran >> {effect}"), stream=streamed)
        _same(_lines(effect), ["ran"], "runs on the server")
        _same(answer.runs, [], "runs at the client")
        _contains(answer.text, "results:")


def same_name(stage: Stage) -> None:
    """A client tool with the name of a server tool runs once, at the client."""
    effect = stage.folder / "same-name"
    command = f"echo ran >> {effect}"
    answer = stage.ask(_call("terminal", command=command), tools=("terminal",))
    _same(answer.runs, [{"name": "terminal", "arguments": {"command": command}}], "runs at the client")
    _same(_lines(effect), [], "runs on the server")
    _contains(answer.text, f"the client ran {command}")


def client_tools(stage: Stage) -> None:
    """Two calls of a client tool, one after the other, in one session; plain and streamed."""
    for streamed in (False, True):
        calls = " ;; ".join(f"get_weather {json.dumps({'city': city})}" for city in ("Oslo", "Rome"))
        conversation = f"{stage.name}-{streamed}"
        answer = stage.ask(f"[[call {calls}]]", tools=("get_weather",), stream=streamed, conversation=conversation)
        _same([run["arguments"] for run in answer.runs], [{"city": "Oslo"}, {"city": "Rome"}], "runs at the client")
        _contains(answer.text, "Oslo is sunny")
        _contains(answer.text, "Rome is sunny")
    _same(len(stage.new_sessions()), 2, "sessions")


def structured(stage: Stage) -> None:
    """The client's usual way to structured output returns the object."""
    _same(stage.ask("[[person]]", structured=True).parsed, PERSON)


def approval(stage: Stage) -> None:
    """The question is text, `yes` as the next message continues the turn, one session; plain and streamed."""
    for streamed in (False, True):
        folder = stage.folder / f"approval-{streamed}"
        folder.mkdir()
        conversation = f"{stage.name}-{streamed}"
        question = stage.ask(
            _call("terminal", command=f"rm -rf {folder}"), stream=streamed, conversation=conversation
        )
        _contains(question.text, f"rm -rf {folder}")
        assert folder.exists(), "the command ran without its approval"
        answer = stage.ask("yes", stream=streamed, conversation=conversation, continues=True)
        _contains(answer.text, "results:")
        assert not folder.exists(), "the approved command did not run"
        _same(stage.ask("[[say and on]]", stream=streamed, conversation=conversation).text, "and on")
    _same(len(stage.new_sessions()), 2, "sessions")


def picture(stage: Stage) -> None:
    """The model gets the picture, and the conversation continues after it."""
    image = png()
    uri = "data:image/png;base64," + b64encode(image).decode()
    _same(stage.ask("[[look]]", picture=uri).text, f"1 pictures, {len(image)} bytes")
    messages = [message for request in stage.model.requests for message in request["messages"]]
    assert any(image in pictures(message) for message in messages), "the model did not get the picture"
    _same(stage.ask("[[say and on]]").text, "and on")


def cancel(stage: Stage) -> None:
    """With `X-Hermes-Cancel-On-Disconnect` a closed stream stops the turn; the session goes on."""
    session = f"matrix-{stage.name}"
    headers = {"X-Hermes-Session-Id": session, "X-Hermes-Cancel-On-Disconnect": "true"}
    left = stage.model.server.left
    stage.ask(f"[[slow text of {stage.name} that no one reads]]", stream=True, abandon=True, headers=headers)
    eventually(lambda: stage.model.server.left > left)
    eventually(lambda: stage.session(session)["phase"] == "idle")
    _same(stage.ask("[[say after it]]", headers=headers).text, "after it")


def restart(stage: Stage) -> None:
    """A restart in mid-stream reaches the client; the turn is finished once, and the session goes on."""
    session = f"matrix-{stage.name}"
    headers = {"X-Hermes-Session-Id": session}
    text = f"the answer of {stage.name} that a restart interrupts"
    stage.driver.begin(stage.request(f"[[slow {text}]]", stream=True, headers=headers))
    stage.driver.first_chunk()
    stage.daemon.terminate()
    stage.daemon.start()
    try:
        stage.driver.answer()  # some clients end the stream without an error
    except DriverError as error:
        if "no answer within" in str(error):
            raise
    eventually(lambda: text in stage.stored_texts(session, "assistant")[-1:])
    _same(stage.ask("[[say after it]]", headers=headers).text, "after it")
    asked = [each for each in stage.stored_texts(session, "user") if "[[slow" in each]
    _same(len(asked), 1, "copies of the question")


SCENARIOS: dict[str, Callable[[Stage], None]] = {
    "plain": plain,
    "stream": stream,
    "multi-turn": multi_turn,
    "session-header": session_header,
    "server-tool": server_tool,
    "same-name": same_name,
    "client-tools": client_tools,
    "structured": structured,
    "approval": approval,
    "picture": picture,
    "cancel": cancel,
    "restart": restart,
}


def png(side: int = 16) -> bytes:
    """A small red square."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\xff\x00\x00" * side) * side
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows)), chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def _call(name: str, **arguments: str) -> str:
    return f"[[call {name} {json.dumps(arguments)}]]"


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").split() if file.exists() else []


def _same(found: object, wanted: object, what: str = "answer") -> None:
    assert found == wanted, f"{what}: {found!r} instead of {wanted!r}"


def _contains(text: str, wanted: str) -> None:
    assert wanted in text, f"answer: {text!r} without {wanted!r}"
