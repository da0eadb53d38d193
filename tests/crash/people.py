"""People on a chat platform who write to a daemon that may die at any moment: Telegram and Slack, seen as one.

Everybody has a chat of their own with the bot, which has their number. What is not confirmed is delivered again.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Mapping
from typing import ClassVar, Self, TypeAlias

from hermes.actors.delivery.attempt import REPEATED
from tests.support.slack_server import APP_TOKEN, BOT_TOKEN, SlackServer
from tests.support.telegram_server import TOKEN, TelegramServer

ADMIN = 8  # who is asked when somebody else's turn needs approval
USERS = range(1, 100)
SECRETS = {"TELEGRAM_BOT_TOKEN": TOKEN, "SLACK_BOT_TOKEN": BOT_TOKEN, "SLACK_APP_TOKEN": APP_TOKEN}


class TelegramPeople:
    may_repeat: ClassVar = True  # what was sent cannot be looked up there

    def __init__(self) -> None:
        self._server = TelegramServer()
        self._pressed: set[int] = set()
        self.until = self._server.until

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.__exit__(None, None, None)

    @property
    def config(self) -> str:
        people = f'allowed_users: {json.dumps([str(each) for each in USERS])}, admins: ["{ADMIN}"]'
        return f'telegram: {{enabled: true, base_url: "{self._server.base_url}", {people}}}\n'

    @property
    def violations(self) -> list[str]:
        return self._server.violations

    @property
    def unconfirmed(self) -> int:
        return len(self._server.unconfirmed)

    def say(self, person: int, text: str) -> None:
        self._server.say(person, person, text)

    def press(self, person: int, label: str) -> None:
        """That button of every question that they have not answered yet."""
        for each in self._server.history(person):
            if each.keyboard and each.id not in self._pressed:
                self._pressed.add(each.id)
                self._server.press(person, each.id, label, person)

    def replies(self, person: int) -> list[str]:
        return self._server.replies(person)


class SlackPeople:
    may_repeat: ClassVar = False

    def __init__(self) -> None:
        self._server = SlackServer(again_after_s=1.0)
        self._pressed: set[str] = set()
        self.until = self._server.until

    def __enter__(self) -> Self:
        self._server.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.__exit__(None, None, None)

    @property
    def config(self) -> str:
        """Reactions are forgotten by each kill, and would be more than Slack takes in a minute."""
        people = f'allowed_users: {json.dumps([f"U{each:03}" for each in USERS])}, admins: ["U{ADMIN:03}"]'
        return f'slack: {{enabled: true, base_url: "{self._server.base_url}", reactions: false, {people}}}\n'

    @property
    def violations(self) -> list[str]:
        return self._server.violations

    @property
    def unconfirmed(self) -> int:
        return self._server.unacknowledged

    def say(self, person: int, text: str) -> None:
        self._server.say(f"D{person}", f"U{person:03}", text)

    def press(self, person: int, label: str) -> None:
        """That button of every question that they have not answered yet."""
        for each in self._server.history(f"D{person}"):
            if each.buttons and each.ts not in self._pressed:
                self._pressed.add(each.ts)
                self._server.press(f"D{person}", each.ts, label, f"U{person:03}")

    def replies(self, person: int) -> list[str]:
        return [html.unescape(text) for text in self._server.replies(f"D{person}")]


People: TypeAlias = TelegramPeople | SlackPeople
PLATFORMS: Mapping[str, Callable[[], People]] = {"telegram": TelegramPeople, "slack": SlackPeople}


def unmarked(text: str) -> str:
    """Without the warning that it may be a repeat."""
    return text.removeprefix(REPEATED.strip()).lstrip()
