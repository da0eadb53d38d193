"""What a fake Slack knows: workspaces, channels, messages, envelopes that wait, and how fast a bot has been talking.

No network here; `slack_server.py` puts it behind HTTP and a WebSocket. Limits are those of Slack's documents: a
section holds 3,000 characters, a changed message's text 4,000, a new one's 40,000. What a bot could be blamed for
without being refused is noted in `violations`.
"""

from __future__ import annotations

import itertools
import re
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

TEAM = "T0001"
BOT_USER = "UHERMES"
BOT_ID = "B0001"
BOT_NAME = "hermes"


_KINDS = {"D": "im", "G": "private_channel", "C": "public_channel"}  # by how their ids begin


class Refusal(Exception):  # noqa: N818 - an answer, not a failure
    def __init__(self, code: str, **more: Any) -> None:
        super().__init__(code)
        self.code = code
        self.more = more


@dataclass(slots=True)
class Shown:
    """One message as a person sees it now."""

    ts: str
    team: str
    channel: str
    by: str  # a person's id, or the bot's
    text: str
    at: float
    thread: str = ""
    blocks: list[dict[str, Any]] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    reactions: set[str] = field(default_factory=set)
    versions: list[str] = field(default_factory=list)  # every text it had, the first one first
    deleted: bool = False
    files: list[dict[str, Any]] = field(default_factory=list)

    @property
    def from_bot(self) -> bool:
        return self.by == BOT_USER

    @property
    def buttons(self) -> list[dict[str, Any]]:
        return [button for block in self.blocks if block["type"] == "actions" for button in block["elements"]]

    def as_json(self) -> dict[str, Any]:
        result: dict[str, Any] = {"type": "message", "ts": self.ts, "user": self.by, "text": self.text}
        if self.from_bot:
            result["bot_id"] = BOT_ID
        if self.thread:
            result["thread_ts"] = self.thread
        if self.files:
            result["files"] = self.files
        return result


@dataclass(slots=True)
class Envelope:
    kind: str
    payload: dict[str, Any]
    id: str = ""  # of its latest delivery
    deliveries: int = 0
    on: object = None  # the connection that has it
    sent_at: float = 0.0
    first_at: float = 0.0
    waited_s: float = 0.0  # from its first delivery to its acknowledgement


class SlackState:
    """Not thread-safe: the server guards it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.messages: list[Shown] = []
        self.waiting: list[Envelope] = []  # that nobody has acknowledged
        self.acknowledged: list[Envelope] = []
        self.violations: list[str] = []
        self.statuses: list[tuple[str, str, str]] = []
        self.asides: list[tuple[str, str, str]] = []  # channel, who alone sees it, text
        self.ephemeral: list[dict[str, Any]] = []  # by addresses for responses, as they read now
        self.responses: dict[str, tuple[str, str, int]] = {}  # addresses: channel, person, answers left
        self.channels: dict[str, str] = {}  # and their teams
        self.names: dict[str, str] = {}  # of people, by their ids
        self.channel_names: dict[str, str] = {}  # by their ids; others are called after their id
        self.archived: set[str] = set()
        self.strange: set[str] = set()  # channels that the bot is no member of, and cannot see
        self.assistant_threads: set[str] = set()
        self._clock = clock
        self._count = itertools.count(1)
        self._posted: dict[str, float] = {}
        self._moments: dict[str, list[float]] = defaultdict(list)  # of calls with a limit

    # ------------------------------------------------------------ what people do

    def say(self, channel: str, user: str, text: str, *, thread: str = "", team: str = TEAM, **more: Any) -> Shown:
        self.channels.setdefault(channel, team)
        shown = self._add(team, channel, user, text, thread)
        event = {**shown.as_json(), "channel": channel, "event_ts": shown.ts, **more}
        direct = channel.startswith("D")
        if channel not in self.strange:
            self.post_event(team, {**event, "channel_type": "im" if direct else "channel"})
        if f"<@{BOT_USER}>" in text and not direct:
            self.post_event(team, {**event, "type": "app_mention"})
        return shown

    def rewrite(self, channel: str, ts: str, text: str) -> None:
        shown = self.message(channel, ts)
        before = shown.as_json()
        shown.text = text
        shown.versions.append(text)
        edited = {"user": shown.by, "ts": self._ts()}
        self.post_event(
            shown.team,
            {
                "type": "message",
                "subtype": "message_changed",
                "channel": channel,
                "ts": edited["ts"],
                "message": {**shown.as_json(), "edited": edited},
                "previous_message": before,
            },
        )

    def delete(self, channel: str, ts: str) -> None:
        shown = self.message(channel, ts)
        shown.deleted = True
        event = {"type": "message", "subtype": "message_deleted", "channel": channel, "ts": self._ts()}
        self.post_event(shown.team, {**event, "deleted_ts": ts, "previous_message": shown.as_json()})

    def press(self, channel: str, ts: str, label: str, user: str) -> None:
        shown = self.message(channel, ts)
        button = next(each for each in shown.buttons if each["text"]["text"] == label)
        message = {**shown.as_json(), "blocks": shown.blocks}
        payload = {
            "type": "block_actions",
            "team": {"id": shown.team, "domain": "test"},
            "user": {"id": user, "username": f"name of {user}", "team_id": shown.team},
            "channel": {"id": channel, "name": "test"},
            "container": {"type": "message", "message_ts": ts, "channel_id": channel},
            "message": message,
            "actions": [{**button, "action_ts": self._ts(), "block_id": "b"}],
        }
        self.waiting.append(Envelope(kind="interactive", payload=payload))

    def slash(
        self,
        channel: str,
        user: str,
        text: str,
        *,
        command: str = "/hermes",
        team: str = TEAM,
        respond_at: str = "",
    ) -> None:
        """`respond_at`: how addresses begin under which the person can be answered alone; empty: there is none."""
        self.channels.setdefault(channel, team)
        payload = {
            "command": command,
            "text": text,
            "user_id": user,
            "user_name": f"name of {user}",
            "channel_id": channel,
            "team_id": team,
            "trigger_id": f"{next(self._count)}.trigger",
            "response_url": self._response_url(channel, user, respond_at),
        }
        self.waiting.append(Envelope(kind="slash_commands", payload=payload))

    def press_alone(self, label: str, user: str, respond_at: str) -> None:
        """On the last message that somebody alone was shown."""
        shown = self.ephemeral[-1]
        button = next(
            each for block in shown["blocks"] for each in block.get("elements", ()) if each["text"]["text"] == label
        )
        payload = {
            "type": "block_actions",
            "team": {"id": TEAM, "domain": "test"},
            "user": {"id": user, "username": f"name of {user}", "team_id": TEAM},
            "channel": {"id": shown["channel"], "name": "test"},
            "container": {
                "type": "message",
                "message_ts": self._ts(),
                "channel_id": shown["channel"],
                "is_ephemeral": True,
            },
            "response_url": self._response_url(shown["channel"], user, respond_at),
            "actions": [{**button, "action_ts": self._ts(), "block_id": "b"}],
        }
        self.waiting.append(Envelope(kind="interactive", payload=payload))

    def _response_url(self, channel: str, user: str, respond_at: str) -> str:
        name = f"r{next(self._count)}"
        self.responses[name] = (channel, user, 5)
        return f"{respond_at}/{name}" if respond_at else ""

    def post_event(self, team: str, event: dict[str, Any]) -> None:
        payload = {
            "type": "event_callback",
            "team_id": team,
            "api_app_id": "A0001",
            "event_id": f"Ev{next(self._count):06}",
            "event": event,
            "authorizations": [{"team_id": team, "user_id": BOT_USER, "is_bot": True}],
        }
        self.waiting.append(Envelope(kind="events_api", payload=payload))

    # ------------------------------------------------------------ what the bot does

    def post(self, team: str, about: dict[str, Any]) -> dict[str, Any]:
        channel = self._channel(team, about)
        if channel in self.strange:
            raise Refusal("not_in_channel")
        text = self._checked(about, most=40_000)
        shown = self._posted_by_bot(team, channel, str(about.get("thread_ts") or ""), text)
        shown.blocks = about.get("blocks") or []
        shown.metadata = about.get("metadata") or {}
        return {"channel": channel, "ts": shown.ts, "message": shown.as_json()}

    def respond(self, name: str, about: dict[str, Any]) -> bool:
        """False: the address is used up, or never was."""
        channel, user, left = self.responses.get(name, ("", "", 0))
        if not left:
            return False
        self.responses[name] = (channel, user, left - 1)
        if about.get("replace_original"):
            self.ephemeral.pop()
        text = self._checked(about, most=40_000)
        self.asides.append((channel, user, text))
        self.ephemeral.append({"channel": channel, "text": text, "blocks": about.get("blocks") or []})
        return True

    def tell_alone(self, team: str, about: dict[str, Any]) -> dict[str, Any]:
        channel = self._channel(team, about)
        self.asides.append((channel, str(about["user"]), self._checked(about, most=40_000)))
        return {"message_ts": self._ts()}

    def show_files(self, team: str, channel: str, thread: str, text: str) -> Shown:
        self._channel(team, {"channel": channel})
        if channel in self.strange:
            raise Refusal("not_in_channel")
        return self._posted_by_bot(team, channel, thread, text)

    def _posted_by_bot(self, team: str, channel: str, thread: str, text: str) -> Shown:
        if thread and not any(each.ts == thread and each.channel == channel for each in self.messages):
            raise Refusal("thread_not_found")
        self._watch_pace(channel)
        self._watch_rate(f"new messages in {team}", 430)
        return self._add(team, channel, BOT_USER, text, thread)

    def update(self, team: str, about: dict[str, Any]) -> dict[str, Any]:
        channel = self._channel(team, about)
        text = self._checked(about, most=4_000)
        shown = self._found(channel, str(about.get("ts")))
        if not shown.from_bot:
            raise Refusal("cant_update_message")
        self._watch_rate(f"changes in {team}", 75)
        shown.text = text
        shown.versions.append(text)
        shown.blocks = about.get("blocks") or []
        shown.metadata = about.get("metadata") or shown.metadata
        return {"channel": channel, "ts": shown.ts, "text": text}

    def listed(self, team: str, about: dict[str, Any], *, thread: str) -> dict[str, Any]:
        """conversations.history, the newest first, or conversations.replies, the oldest first."""
        channel = self._channel(team, about)
        found = [each for each in self.messages if each.channel == channel and not each.deleted]
        if thread:
            found = [each for each in found if thread in {each.ts, each.thread}]
            if not found:
                raise Refusal("thread_not_found")
        else:
            found = [each for each in reversed(found) if not each.thread or each.thread == each.ts]
        oldest, latest = float(about.get("oldest") or 0), float(about.get("latest") or "inf")
        inside = [each for each in found if oldest <= float(each.ts) <= latest or each.ts == thread]
        first = int(about.get("cursor") or 0)
        limit = int(about.get("limit") or 100)
        page = inside[first : first + limit]
        more = first + limit < len(inside)
        with_metadata = str(about.get("include_all_metadata")).lower() in {"true", "1"}
        return {
            "messages": [
                {
                    **each.as_json(),
                    **self._answers(each),
                    **({"metadata": each.metadata} if with_metadata and each.metadata else {}),
                }
                for each in page
            ],
            "has_more": more,
            "response_metadata": {"next_cursor": str(first + limit) if more else ""},
        }

    def member_of(self, team: str, about: dict[str, Any]) -> dict[str, Any]:
        """users.conversations."""
        wanted = str(about.get("types") or "public_channel").split(",")
        here = [each for each, its in self.channels.items() if its == team and each[0] in _KINDS]
        found = [each for each in here if _KINDS[each[0]] in wanted and each not in self.strange | self.archived]
        first, limit = int(about.get("cursor") or 0), int(about.get("limit") or 100)
        more = str(first + limit) if first + limit < len(found) else ""
        channels = [{"id": each} for each in found[first : first + limit]]
        return {"channels": channels, "response_metadata": {"next_cursor": more}}

    def described(self, team: str, about: dict[str, Any]) -> dict[str, Any]:
        """conversations.info."""
        channel = self._channel(team, about)
        return {"channel": {"id": channel, "name": self.channel_names.get(channel, channel.lower())}}

    def react(self, team: str, about: dict[str, Any], *, add: bool) -> dict[str, Any]:
        what, most = ("reactions", 75) if add else ("reactions taken back", 40)
        self._watch_rate(f"{what} in {team}", most)
        shown = self._found(self._channel(team, about), str(about.get("timestamp")))
        name = str(about.get("name"))
        if add == (name in shown.reactions):
            raise Refusal("already_reacted" if add else "no_reaction")
        (shown.reactions.add if add else shown.reactions.discard)(name)
        return {}

    def person(self, user: str) -> dict[str, Any]:
        if user not in self.names:
            raise Refusal("user_not_found")
        profile = {"display_name": self.names[user], "real_name": f"{self.names[user]} Miller"}
        return {"user": {"id": user, "name": user.lower(), "profile": profile}}

    def set_status(self, about: dict[str, Any]) -> dict[str, Any]:
        if about.get("thread_ts") not in self.assistant_threads:
            raise Refusal("invalid_thread_ts")
        self.statuses.append((str(about["channel_id"]), str(about["thread_ts"]), str(about["status"])))
        return {}

    # ------------------------------------------------------------ the rest

    def message(self, channel: str, ts: str) -> Shown:
        return next(each for each in self.messages if each.channel == channel and each.ts == ts)

    def _answers(self, parent: Shown) -> dict[str, Any]:
        """What Slack says of a message that was answered in a thread."""
        answers = [each for each in self.messages if each.thread == parent.ts and each.channel == parent.channel]
        if not answers or parent.thread not in {"", parent.ts}:
            return {}
        return {"thread_ts": parent.ts, "reply_count": len(answers), "latest_reply": answers[-1].ts}

    def _found(self, channel: str, ts: str) -> Shown:
        for each in self.messages:
            if each.channel == channel and each.ts == ts and not each.deleted:
                return each
        raise Refusal("message_not_found")

    def _channel(self, team: str, about: dict[str, Any]) -> str:
        channel = str(about.get("channel") or "")
        if self.channels.get(channel) != team:
            raise Refusal("channel_not_found")
        if channel in self.archived:
            raise Refusal("is_archived")
        return channel

    def _add(self, team: str, channel: str, by: str, text: str, thread: str) -> Shown:
        shown = Shown(
            ts=self._ts(),
            team=team,
            channel=channel,
            by=by,
            text=text,
            at=self._clock(),
            thread=thread,
            versions=[text],
        )
        self.messages.append(shown)
        return shown

    def _ts(self) -> str:
        number = next(self._count)
        return f"{int(time.time())}.{number:06}"

    def _watch_pace(self, channel: str) -> None:
        now = self._clock()
        if now - self._posted.get(channel, -9.0) < 0.95:
            self.violations.append(f"two messages to {channel} within a second")
        self._posted[channel] = now

    def _watch_rate(self, what: str, most: int) -> None:
        """Slack's tiers are 50 and 20 a minute, with some more at once."""
        now = self._clock()
        moments = self._moments[what]
        moments.append(now)
        if sum(at > now - 60 for at in moments) > most:
            self.violations.append(f"more than {most} {what} within a minute")

    def _checked(self, about: dict[str, Any], *, most: int) -> str:
        text = str(about.get("text") or "")
        if not text.strip() and not about.get("blocks"):
            raise Refusal("no_text")
        if len(text) > most:
            raise Refusal("msg_too_long")
        if re.search(r"<[!@#]", text):
            self.violations.append(f"the text rings somebody: {text[:80]}")
        _check_blocks(about.get("blocks") or [])
        return text


def _check_blocks(blocks: list[dict[str, Any]]) -> None:
    if len(blocks) > 50:
        raise Refusal("invalid_blocks")
    for block in blocks:
        if block["type"] == "section" and not 1 <= len(block["text"]["text"]) <= 3000:
            raise Refusal("invalid_blocks")
        elements = block.get("elements", [])
        if len(elements) > 25 or len({each["action_id"] for each in elements}) != len(elements):
            raise Refusal("invalid_blocks")
        for each in elements:
            if len(each["text"]["text"]) > 75 or len(each["value"]) > 2000:
                raise Refusal("invalid_blocks")
