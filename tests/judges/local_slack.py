"""local-slack as a process: a Slack that others wrote, with one workspace, two people, a channel and our app.

It listens on every interface and validates little: it is for a network with nothing else in it. An envelope that
nobody acknowledges is not delivered again, and metadata of messages is not kept; our own fake plays these.
"""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

from hermes.actors.delivery.preview import CURSOR
from tests.support.free_port import free_port
from tests.support.waiting import eventually

BOT_TOKEN, APP_TOKEN, SIGNING_SECRET = "xoxb-of-a-local-slack", "xapp-of-a-local-slack", "secret-of-a-local-slack"
BOT, ANN, BOB, CHANNEL = "U0BOT", "U0ANN", "U0BOB", "C0GENERAL"


class LocalSlack:
    def __init__(self, packages: Path, folder: Path, *, events_url: str = "") -> None:
        """`events_url`: where it posts events; without one they go over Socket Mode."""
        self._binary = packages / "local-slack-linux-x64" / "bin" / "local-slack"
        self._folder = folder
        self._events_url = events_url
        self.address = f"http://127.0.0.1:{free_port()}"

    @property
    def base_url(self) -> str:
        return f"{self.address}/api"

    def __enter__(self) -> Self:
        config = self._folder / "local-slack.json"
        config.write_text(json.dumps(self._config()), encoding="utf-8")
        port = self.address.rpartition(":")[2]
        options = ["--config", str(config), "--port", port, "--base-host", "127.0.0.1"]
        options += ["--files-dir", str(self._folder)]
        with (self._folder / "local-slack.log").open("wb") as log:
            self._process = subprocess.Popen(
                [self._binary, *options], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        eventually(self._is_there)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait(30)

    def _config(self) -> dict[str, Any]:
        delivery = {"mode": "events", "requestUrl": self._events_url} if self._events_url else {"mode": "socket"}
        secrets = {"botToken": BOT_TOKEN, "appToken": APP_TOKEN, "signingSecret": SIGNING_SECRET}
        return {
            "workspace": {"name": "Test", "domain": "test", "teamId": "T0TEST"},
            "app": {"appId": "A0HERMES", "botUserId": BOT, "botName": "hermes", **secrets, **delivery},
            "users": [{"id": ANN, "name": "ann"}, {"id": BOB, "name": "bob"}],
            "channels": [{"id": CHANNEL, "name": "general", "members": [ANN, BOB, BOT]}],
        }

    def _is_there(self) -> bool:
        assert self._process.poll() is None, (self._folder / "local-slack.log").read_text()
        try:
            self.call("state")
        except urllib.error.URLError:
            return False
        return True

    # ------------------------------------------------------------ what people do

    def say(self, channel: str, user: str, text: str, thread: str = "") -> dict[str, Any]:
        """A person's id as the channel is their direct message to the bot. Returns the message, with its `ts`."""
        more = {"thread_ts": thread} if thread else {}
        message: dict[str, Any] = self.call("message", {"channel": channel, "user": user, "text": text, **more})[
            "message"
        ]
        return message

    def rewrite(self, channel: str, ts: str, user: str, text: str) -> None:
        self.call("edit-message", {"channel": channel, "ts": ts, "user": user, "text": text})

    def slash(self, channel: str, user: str, text: str) -> None:
        self.call("command", {"channel": channel, "user": user, "command": "/hermes", "text": text})

    def upload(self, channel: str, user: str, name: str, data: bytes, text: str = "") -> None:
        line = b"a-line-between-the-parts"
        head = b'\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n%s\r\n'
        fields = {"channel": channel, "user": user, "text": text}
        parts = [head % (key.encode(), b"", value.encode()) for key, value in fields.items()]
        about = f'; filename="{name}"\r\nContent-Type: text/plain'.encode()
        body = b"".join(b"--" + line + each for each in (*parts, head % (b"file", about, data)))
        headers = {"Content-Type": f"multipart/form-data; boundary={line.decode()}"}
        self._send("upload", body + b"--" + line + b"--\r\n", headers)

    def press(self, channel: str, user: str, label: str) -> None:
        """The button with that label, below the last message that has one."""
        ts, button = next(
            (each["ts"], button)
            for each in reversed(self.messages(channel))
            for button in _buttons(each)
            if button["text"]["text"] == label
        )
        self.call("interact", {"channel": channel, "messageTs": ts, "user": user, "action": button})

    # ------------------------------------------------------------ what is seen

    def messages(self, channel: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call(f"messages/{channel}")["messages"]
        return found

    def replies(self, channel: str) -> list[str]:
        return [each["text"] for each in self.messages(channel) if each["user"] == BOT]

    def files(self, channel: str) -> list[str]:
        """The names of those that the bot has shared."""
        ours = (each for each in self.messages(channel) if each["user"] == BOT)
        return [file["name"] for each in ours for file in each.get("files") or ()]

    def reactions(self, channel: str, ts: str) -> set[str]:
        message = next(each for each in self.messages(channel) if each["ts"] == ts)
        return {each["name"] for each in message.get("reactions") or ()}

    def log(self, kind: str) -> list[dict[str, Any]]:
        """What went between it and the bot, of one kind, such as `ack`."""
        return [each for each in self.call("log")["log"] if each["kind"] == kind]

    def until_replies(self, channel: str, count: int = 1) -> list[str]:
        """What the bot says there, as soon as it is so many messages and none of them grows any more."""

        def settled() -> list[str]:
            found = self.replies(channel)
            return found if len(found) >= count and not any(each.endswith(CURSOR) for each in found) else []

        result: list[str] = eventually(settled)
        return result

    def call(self, what: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        return self._send(what, data, {"Content-Type": "application/json"})

    def _send(self, what: str, data: bytes | None, headers: dict[str, str]) -> Any:
        request = urllib.request.Request(f"{self.address}/_control/{what}", data=data, headers=headers)
        with urllib.request.urlopen(request, timeout=20) as response:
            return json.load(response)


def _buttons(message: dict[str, Any]) -> list[dict[str, Any]]:
    rows = (block["elements"] for block in message.get("blocks") or () if block["type"] == "actions")
    return [button for row in rows for button in row]
