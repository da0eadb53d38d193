"""Writes docs/screens.md: what people see on Telegram and on Slack, recorded from the real daemon and the fakes.

    python -m tests.support.screens

Each platform plays the same scenes. A message of the bot's stands as it reads in the end, after what it said first if
that was something else; what differs from run to run (ids of conversations) is made the same.
"""

from __future__ import annotations

import html
import re
import tempfile
import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from hermes.actors.delivery.preview import CURSOR
from tests.support import slack_server, telegram_server
from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import STALL, Reply, stream
from tests.support.scripted_model import ScriptedModel, answered, calling
from tests.support.slack_server import SlackServer
from tests.support.telegram_server import TelegramServer
from tests.support.waiting import eventually

DOCUMENT = Path(__file__).parents[2] / "docs" / "screens.md"
BEGINNING = """\
# Screens

What people see, recorded by `python -m tests.support.screens` from the real daemon; Telegram and Slack are the
fakes that the tests use, and the model plays a part. Buttons are in brackets. A message that was changed stands
with what it said first and what it says in the end; on Slack, which allows few changes, with the end alone.
"""
_HOUR = 3600
_SESSION = re.compile(r"\b\d{8}_\d{6}_[0-9a-f]{8}\b")


class Message(NamedTuple):
    by_bot: bool
    versions: list[str]
    buttons: list[str]
    signs: set[str]  # reactions


class ScreenRecorder(ABC):
    """A platform with one person in a private chat."""

    title: str
    sign = "/"  # of a command, as people type it
    secrets: Mapping[str, str]
    server: Any

    @property
    @abstractmethod
    def config(self) -> str: ...

    @abstractmethod
    def say(self, text: str) -> None: ...

    @abstractmethod
    def press(self, label: str) -> None: ...

    @abstractmethod
    def messages(self) -> list[Message]: ...

    def settled(self) -> bool:
        """Whether what decorates the messages is there, too."""
        return True

    def until(self, text: str) -> None:
        """The bot has said that, and is done with it."""

        def is_said(message: Message) -> bool:
            last = message.versions[-1]
            return message.by_bot and text in last and not last.endswith(CURSOR)

        eventually(lambda: any(map(is_said, self.messages())), 30)


class OnTelegram(ScreenRecorder):
    title = "Telegram"
    secrets = MappingProxyType({"TELEGRAM_BOT_TOKEN": telegram_server.TOKEN})

    def __init__(self) -> None:
        self.server = TelegramServer()

    @property
    def config(self) -> str:
        return f'telegram: {{enabled: true, base_url: "{self.server.base_url}", admins: ["7"]}}\n'

    def say(self, text: str) -> None:
        self.server.say(7, 7, text)

    def press(self, label: str) -> None:
        asked = [each for each in self.server.history(7) if each.keyboard][-1]
        self.server.press(7, asked.id, label, 7)

    def messages(self) -> list[Message]:
        return [
            Message(
                each.from_bot, list(each.versions), [button["text"] for row in each.keyboard for button in row], set()
            )
            for each in self.server.history(7)
        ]


class OnSlack(ScreenRecorder):
    title = "Slack"
    sign = "!"
    secrets = MappingProxyType({"SLACK_BOT_TOKEN": slack_server.BOT_TOKEN, "SLACK_APP_TOKEN": slack_server.APP_TOKEN})

    def __init__(self) -> None:
        self.server = SlackServer()

    @property
    def config(self) -> str:
        return f'slack: {{enabled: true, base_url: "{self.server.base_url}", admins: ["UANN"]}}\n'

    def say(self, text: str) -> None:
        self.server.say("D1", "UANN", text)

    def press(self, label: str) -> None:
        asked = [each for each in self.server.history("D1") if each.buttons][-1]
        self.server.press("D1", asked.ts, label, "UANN")

    def messages(self) -> list[Message]:
        return [
            Message(
                each.from_bot,
                [html.unescape(each.text)],  # what it said before depends on how many changes Slack has left for us
                [button["text"]["text"] for button in each.buttons],
                set(each.reactions),
            )
            for each in self.server.history("D1")
        ]

    def settled(self) -> bool:
        asked = (each for each in self.messages() if not each.by_bot and not each.versions[0].startswith(self.sign))
        return all(each.signs == {"white_check_mark"} for each in asked)


class Play:
    """The scenes on one stage. Each leaves its transcript."""

    def __init__(self, stage: ScreenRecorder, model: ScriptedModel, daemon: DaemonProcess, clock: Path) -> None:
        self._stage = stage
        self._model = model
        self._daemon = daemon
        self._clock = clock
        self._pressed: dict[
            int, tuple[Message, str]
        ] = {}  # what was asked, and which button; by its place in the chat

    def scenes(self) -> Iterator[tuple[str, str]]:
        for title, scene in (
            ("A first conversation", self._first_conversation),
            ("A tool run that needs approval", self._approval),
            ("A restart in the middle", self._restart),
            ("A reset", self._reset),
        ):
            begins = len(self._stage.messages())
            self._model.on_request = _acting
            scene()
            eventually(self._stage.settled)
            yield title, self._transcript(begins)

    def _first_conversation(self) -> None:
        self._stage.say("Good morning! What can you do?")
        self._stage.until("at your service")
        self._stage.say(f"{self._stage.sign}reasoning high")
        self._stage.until("high")

    def _approval(self) -> None:
        self._stage.say("Please clear the build folder.")
        eventually(lambda: self._stage.messages()[-1].buttons)
        *before, asked = self._stage.messages()
        self._pressed[len(before)] = asked, "once"
        self._stage.press("once")
        self._stage.until("→ once")
        self._stage.until("The folder is gone")

    def _restart(self) -> None:
        self._model.on_request = lambda _: stream(STALL)
        asked = len(self._model.requests)
        self._stage.say("How many files are there?")
        eventually(lambda: len(self._model.requests) > asked)
        self._model.on_request = _acting
        assert "has restarted" in self._daemon.hermes("restart", "--reason", "new version").stdout
        self._stage.until("three files")

    def _reset(self) -> None:
        self._clock.write_text(str(30 * _HOUR), encoding="ascii")
        self._stage.until("was reset")
        self._stage.say("Good morning again!")
        self._stage.until("fresh start")

    def _transcript(self, begins: int) -> str:
        lines: list[str] = []
        for number, message in enumerate(self._stage.messages()[begins:], begins):
            if number not in self._pressed:
                lines += _shown(message)
                continue
            asked, label = self._pressed[number]
            lines += [*_shown(asked)][:-1]
            lines += [
                f"  Ann presses [{label}], and it is changed to",
                textwrap.indent(message.versions[-1], "    "),
                "",
            ]
        return _SESSION.sub("20261117_090000_1a2b3c4d", "\n".join(lines))


def _acting(body: dict[str, Any]) -> Reply | None:
    """The model's part."""
    last = body["messages"][-1]
    if last["role"] == "tool":
        return answered("Done. The folder is gone.")
    match str(last["content"]):
        case "Good morning! What can you do?":
            return answered("I am **at your service**: I read and write files, run commands and look things up.")
        case "Please clear the build folder.":
            return calling(10, ("terminal", {"command": "rm -rf build && sleep 3"}))
        case "Good morning again!":
            return answered("Good morning! This is a fresh start.")
    return answered("There are three files.")


def _shown(message: Message) -> Iterator[str]:
    # How far an answer had come when somebody looked is a matter of moments.
    whole = [each for each in message.versions if not each.endswith(CURSOR)]
    first, last = whole[0], whole[-1]
    sign = f"  :{', '.join(sorted(message.signs))}:" if message.signs else ""
    yield ("Hermes" if message.by_bot else "Ann") + sign
    if first != last:
        yield textwrap.indent(first, "    ")
        yield "  changed to"
    yield textwrap.indent(last, "    ")
    if message.buttons:
        yield "    " + " ".join(f"[{each}]" for each in message.buttons)
    yield ""


def recorded(stage: Callable[[], ScreenRecorder]) -> str:
    """One platform's chapter."""
    here = stage()
    with (
        tempfile.TemporaryDirectory(prefix="hermes-") as name,
        here.server,
        ScriptedModel(idle_timeout_s=60) as model,
    ):
        folder = Path(name)
        clock = folder / "clock"
        clock.write_text("0", encoding="ascii")
        (folder / "cwd" / "build").mkdir(parents=True)
        config = (
            f"{model.config}{here.config}terminal: {{cwd: {folder}/cwd}}\nshutdown: {{drain_s: 4, timeout_s: 20}}\n"
            "session_reset: {mode: idle, idle_minutes: 1440}\n"
        )
        environ = {**here.secrets, "HERMES_TEST_CLOCK": str(clock)}
        with DaemonProcess(config=config, environ=environ, home=folder / "home") as daemon:
            scenes = [
                f"### {title}\n\n```text\n{shown.rstrip()}\n```\n"
                for title, shown in Play(here, model, daemon, clock).scenes()
            ]
    return "\n".join([f"## {here.title}\n", *scenes])


def main() -> None:
    DOCUMENT.parent.mkdir(exist_ok=True)
    chapters = [recorded(stage) for stage in (OnTelegram, OnSlack)]
    DOCUMENT.write_text("\n".join([BEGINNING, *chapters]), encoding="utf-8")


if __name__ == "__main__":
    main()
