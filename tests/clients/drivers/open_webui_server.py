"""Driver of Open WebUI: a server of its own on a free port, used through its HTTP API.

Session headers are those of the connection in its settings. Client tools are run by this driver, as a program behind
Open WebUI's API does; the server passes them on.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from tests.clients.drivers.protocol import PERSON_SCHEMA, Answer, Ask, ClientTools, Connection, parameters, serve

START_WITHIN_S = 280.0
ANSWER_WITHIN_S = 100.0
_OFFLINE = {
    "OFFLINE_MODE": "True",
    "HF_HUB_OFFLINE": "1",
    "RAG_EMBEDDING_ENGINE": "openai",  # else it loads a model of its own
    "ENABLE_OLLAMA_API": "False",
    "ENABLE_VERSION_UPDATE_CHECK": "False",
    "ANONYMIZED_TELEMETRY": "False",
    "DO_NOT_TRACK": "True",
    "SCARF_NO_ANALYTICS": "True",
    "WEBUI_AUTH": "False",
    "CORS_ALLOW_ORIGIN": "*",
}


class OpenWebUI:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._address = ("127.0.0.1", _free_port())
        self._token = ""
        self._headers: dict[str, str] | None = None
        self._histories: dict[str, list[Any]] = {}
        self._start()

    def __call__(self, ask: Ask) -> Answer:
        self._use_headers(ask.headers)
        history = self._histories.setdefault(ask.conversation, [])
        history.append({"role": "user", "content": _content(ask)})
        body: dict[str, Any] = {"model": "hermes", "messages": history, "stream": ask.stream}
        if ask.tools:
            body["tools"] = [
                {"type": "function", "function": {"name": name, "parameters": parameters(name)}} for name in ask.tools
            ]
        if ask.structured:
            schema = {"name": "person", "schema": PERSON_SCHEMA, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
            return Answer(parsed=json.loads(self._completion(body)["content"]))
        tools = ClientTools()
        while True:
            message = self._streamed(body, ask) if ask.stream else self._completion(body)
            if message is None:
                return Answer()
            history.append(message)
            if not message.get("tool_calls"):
                if len(history) == 2 and not ask.headers:
                    self._name_chat(history)
                return Answer(text=message["content"] or "", runs=tools.runs)
            for call in message["tool_calls"]:
                result = tools.run(call["function"]["name"], call["function"]["arguments"])
                history.append({"role": "tool", "tool_call_id": call["id"], "content": result})

    def _name_chat(self, history: list[Any]) -> None:
        """Ask for a title and tags, as the browser does after the first answer of a chat."""
        for task in ("title", "tags"):
            self._ask(f"/api/v1/tasks/{task}/completions", {"model": "hermes", "messages": history})

    def _start(self) -> None:
        home = Path.home()
        keys = {"OPENAI_API_BASE_URL": self._connection.base_url, "OPENAI_API_KEY": self._connection.key}
        environ = {**os.environ, **_OFFLINE, **keys, "DATA_DIR": str(home), "WEBUI_SECRET_KEY": "for this test only"}
        host, port = self._address
        program = Path(sys.executable).with_name("open-webui")
        command = [str(program), "serve", "--host", host, "--port", str(port)]
        server = subprocess.Popen(command, env=environ, stdin=subprocess.DEVNULL, stdout=sys.stderr)
        deadline = time.monotonic() + START_WITHIN_S
        while not self._token:
            try:
                self._token = self._ask("/api/v1/auths/signin", {"email": "", "password": ""})["token"]
            except OSError:
                if time.monotonic() > deadline or server.poll() is not None:
                    raise
                time.sleep(0.5)
        self._use_headers({})

    def _use_headers(self, headers: dict[str, str]) -> None:
        """Set the headers of the connection, as an administrator does in the settings."""
        if headers == self._headers:
            return
        settings = {
            "ENABLE_OPENAI_API": True,
            "OPENAI_API_BASE_URLS": [self._connection.base_url],
            "OPENAI_API_KEYS": [self._connection.key],
            "OPENAI_API_CONFIGS": {"0": {"enable": True, "headers": headers}},
        }
        self._ask("/openai/config/update", settings)
        self._ask("/api/models?refresh=true")
        self._headers = headers

    def _completion(self, body: dict[str, Any]) -> Any:
        return self._ask("/api/chat/completions", body)["choices"][0]["message"]

    def _streamed(self, body: dict[str, Any], ask: Ask) -> Any:
        """The message of a stream; None if the stream was abandoned."""
        message: dict[str, Any] = {"role": "assistant", "content": ""}
        client = http.client.HTTPConnection(*self._address, timeout=ANSWER_WITHIN_S)
        try:
            client.request("POST", "/api/chat/completions", json.dumps(body), self._request_headers())
            response = client.getresponse()
            if response.status != 200:
                raise RuntimeError(f"{response.status}: {response.read().decode()[:500]}")
            for delta in _deltas(response):
                message["content"] += delta.get("content") or ""
                _add_calls(message, delta)
                if delta.get("content"):
                    self._connection.on_chunk()
                    if ask.abandon:
                        return None
        finally:
            client.close()
        return message

    def _ask(self, path: str, body: Any = None) -> Any:
        host, port = self._address
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{host}:{port}{path}", data, self._request_headers())
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_WITHIN_S) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{error.code}: {error.read().decode()[:500]}") from None

    def _request_headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}


def _deltas(response: http.client.HTTPResponse) -> Any:
    for line in response:
        data = line.decode().strip().removeprefix("data:").strip()
        if not data.startswith("{"):
            continue
        chunk = json.loads(data)
        if "error" in chunk:
            raise RuntimeError(str(chunk["error"])[:500])
        for choice in chunk.get("choices") or ():
            yield choice["delta"]


def _add_calls(message: dict[str, Any], delta: dict[str, Any]) -> None:
    for part in delta.get("tool_calls") or ():
        calls = message.setdefault("tool_calls", [])
        if part["index"] >= len(calls):
            calls.append({"id": part["id"], "type": "function", "function": {"name": "", "arguments": ""}})
        for name in ("name", "arguments"):
            calls[part["index"]]["function"][name] += part["function"].get(name) or ""


def _content(ask: Ask) -> Any:
    if not ask.picture:
        return ask.text
    return [{"type": "text", "text": ask.text}, {"type": "image_url", "image_url": {"url": ask.picture}}]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    serve(OpenWebUI)
