"""What a fake Telegram knows: people, chats, messages, updates that wait, and how fast a bot has been talking.

No network here; `telegram_server.py` puts it behind HTTP. Everything a bot could be blamed for is noted in
`violations`: too many messages a second or a minute, messages too long, and more.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

LIMIT = 4096
MAX_FILE = 20 << 20
BOT_ID = 4242
BOT_NAME = "hermes_test_bot"
_TAGS = {"b", "i", "s", "u", "code", "pre", "a", "blockquote", "strong", "em", "del", "tg-spoiler"}


class Refusal(Exception):  # noqa: N818 - an answer, not a failure
    def __init__(self, status: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters


@dataclass(slots=True)
class Shown:
    """One message as a person sees it now."""

    id: int
    chat: int
    by: int  # a person's id, or the bot's
    text: str
    at: float
    thread: int | None = None
    markup: str = ""  # as the bot sent it
    keyboard: list[list[dict[str, str]]] = field(default_factory=list)
    reply_to: int | None = None
    versions: list[str] = field(default_factory=list)  # every text it had, the first one first
    deleted: bool = False
    file: tuple[str, str, bytes] | None = None  # how the bot sent it (photo, voice, document), its name and content

    @property
    def from_bot(self) -> bool:
        return self.by == BOT_ID


class TelegramState:
    """Not thread-safe: the server guards it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.updates: deque[dict[str, Any]] = deque()  # that nobody has confirmed
        self.messages: list[Shown] = []
        self.violations: list[str] = []
        self.typing: list[tuple[int, float]] = []
        self.reactions: dict[tuple[int, int], list[str]] = {}  # by chat and message
        self.answered_queries: list[str] = []
        self.toasts: list[str] = []  # shown to whoever pressed, and to nobody else
        self.menu: list[str] = []
        self.blocked: set[int] = set()  # chats whose person has blocked the bot
        self.moved: dict[int, int] = {}  # groups that have become supergroups
        self.files: dict[str, bytes] = {}  # that people have sent, by their ids
        self._clock = clock
        self._next_update = 1000
        self._next_message: dict[int, int] = {}
        self._spoken: list[tuple[float, int]] = []  # when, where

    # ------------------------------------------------------------ what people do

    def say(
        self,
        chat: int,
        user: int,
        text: str,
        *,
        thread: int | None = None,
        reply_to: int | None = None,
        **more: Any,  # further fields of the message, such as photo=[…]
    ) -> Shown:
        shown = self._add(chat, user, text, thread=thread, reply_to=reply_to)
        self.post("message", {**self._as_json(shown), **more})
        return shown

    def rewrite(self, chat: int, message: int, text: str, **more: Any) -> None:
        shown = self.message(chat, message)
        shown.text = text
        shown.versions.append(text)
        self.post("edited_message", {**self._as_json(shown), "edit_date": 1, **more})

    def migrate(self, group: int, supergroup: int) -> None:
        """A group becomes a supergroup: both are told, in messages of nobody."""
        self.moved[group] = supergroup
        for chat, field_name, other in (
            (group, "migrate_to_chat_id", supergroup),
            (supergroup, "migrate_from_chat_id", group),
        ):
            told = self._as_json(self._add(chat, 0, "", thread=None, reply_to=None))
            self.post("message", {**told, "text": None, field_name: other})

    def press(self, chat: int, message: int, label: str, user: int) -> str:
        shown = self.message(chat, message)
        data = next(
            each["callback_data"]
            for row in shown.keyboard
            for each in row
            if label in {each["text"], each["callback_data"]}
        )
        query = f"query-{self._next_update}"
        self.post(
            "callback_query",
            {"id": query, "from": _user(user), "message": self._as_json(shown), "chat_instance": "1", "data": data},
        )
        return query

    def post(self, kind: str, content: Any) -> int:
        number = self._next_update
        self._next_update += 1
        self.updates.append({"update_id": number, kind: content})
        return number

    def message(self, chat: int, message: int) -> Shown:
        return next(each for each in self.messages if (each.chat, each.id) == (chat, message))

    # ------------------------------------------------------------ what the bot does

    def confirm(self, offset: int) -> None:
        """Forgets the updates before it; a negative one is counted from the end."""
        if offset < 0:
            while len(self.updates) > -offset:
                self.updates.popleft()
        while self.updates and self.updates[0]["update_id"] < offset:
            self.updates.popleft()

    def send(self, about: dict[str, Any]) -> dict[str, Any]:
        chat = self._chat_of(about)
        text = self._visible(about)
        self._note_speed(chat)
        reply = about.get("reply_parameters") or {}
        shown = self._add(
            chat,
            BOT_ID,
            text,
            thread=_int(about.get("message_thread_id")),
            reply_to=_int(reply.get("message_id")),
        )
        shown.markup = str(about["text"])
        shown.keyboard = _keyboard(about)
        return self._as_json(shown)

    def send_file(self, kind: str, about: dict[str, Any], name: str, data: bytes) -> dict[str, Any]:
        chat = self._chat_of(about)
        self._note_speed(chat)
        if kind == "photo" and not data.startswith((b"\xff\xd8\xff", b"\x89PNG")):
            raise Refusal(400, "Bad Request: IMAGE_PROCESS_FAILED")
        if kind in {"audio", "video"} and data.startswith(b"no "):
            raise Refusal(400, f"Bad Request: wrong type of {kind}")
        caption = str(about.get("caption", ""))
        reply = about.get("reply_parameters") or {}
        thread, answers = _int(about.get("message_thread_id")), _int(reply.get("message_id"))
        shown = self._add(chat, BOT_ID, caption, thread=thread, reply_to=answers)
        shown.file = (kind, name, data)
        return self._as_json(shown)

    def file(self, file_id: str) -> dict[str, Any]:
        if file_id not in self.files:
            raise Refusal(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        if len(self.files[file_id]) > MAX_FILE:
            raise Refusal(400, "Bad Request: file is too big")
        about = {"file_id": file_id, "file_unique_id": f"u-{file_id}", "file_size": len(self.files[file_id])}
        return {**about, "file_path": f"files/{file_id}"}

    def edit(self, about: dict[str, Any]) -> dict[str, Any]:
        chat = self._chat_of(about)
        text = self._visible(about)
        self._note_speed(chat)
        number = _int(about.get("message_id"))
        shown = next((each for each in self.messages if (each.chat, each.id) == (chat, number)), None)
        if shown is None or shown.deleted:
            raise Refusal(400, "Bad Request: message to edit not found")
        if not shown.from_bot:
            raise Refusal(400, "Bad Request: message can't be edited")
        if (shown.text, shown.markup, shown.keyboard) == (text, str(about["text"]), _keyboard(about)):
            raise Refusal(
                400,
                "Bad Request: message is not modified: specified new message content and reply markup are exactly "
                "the same as a current content and reply markup of the message",
            )
        shown.text, shown.markup, shown.keyboard = text, str(about["text"]), _keyboard(about)
        shown.versions.append(text)
        return self._as_json(shown)

    def delete(self, about: dict[str, Any]) -> bool:
        chat = self._chat_of(about)
        number = _int(about.get("message_id"))
        shown = next((each for each in self.messages if (each.chat, each.id) == (chat, number)), None)
        if shown is None or shown.deleted:
            raise Refusal(400, "Bad Request: message to delete not found")
        shown.deleted = True
        return True

    def react(self, about: dict[str, Any]) -> bool:
        message = self.message(self._chat_of(about), int(about["message_id"]))
        self.reactions[message.chat, message.id] = [each["emoji"] for each in about.get("reaction", [])]
        return True

    def show_typing(self, about: dict[str, Any]) -> bool:
        self.typing.append((self._chat_of(about), self._clock()))
        return True

    def answer_query(self, about: dict[str, Any]) -> bool:
        if len(toast := str(about.get("text") or "")) > 200:
            raise Refusal(400, "Bad Request: MESSAGE_TOO_LONG")
        self.toasts += [toast] if toast else []
        self.answered_queries.append(str(about["callback_query_id"]))
        return True

    # ------------------------------------------------------------ within

    def _add(self, chat: int, by: int, text: str, *, thread: int | None, reply_to: int | None) -> Shown:
        number = self._next_message.get(chat, 0) + 1
        self._next_message[chat] = number
        shown = Shown(number, chat, by, text, self._clock(), thread, reply_to=reply_to, versions=[text])
        self.messages.append(shown)
        return shown

    def _chat_of(self, about: dict[str, Any]) -> int:
        chat = _int(about.get("chat_id")) or 0
        if chat in self.blocked:
            raise Refusal(403, "Forbidden: bot was blocked by the user")
        if chat in self.moved:
            raise Refusal(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                migrate_to_chat_id=self.moved[chat],
            )
        if not any(each.chat == chat for each in self.messages):
            raise Refusal(400, "Bad Request: chat not found")
        return chat

    def _visible(self, about: dict[str, Any]) -> str:
        text = str(about.get("text", ""))
        if about.get("parse_mode") == "HTML":
            text = visible_text(text)
        elif about.get("parse_mode"):
            raise Refusal(400, "Bad Request: unsupported parse_mode")
        text = text.strip()
        if not text:
            raise Refusal(400, "Bad Request: message text is empty")
        if len(text.encode("utf-16-le")) // 2 > LIMIT:
            self.violations.append(f"a message of {len(text)} characters")
            raise Refusal(400, "Bad Request: message is too long")
        return text

    def _note_speed(self, chat: int) -> None:
        now = self._clock()
        self._spoken.append((now, chat))
        lately = [at for at, _ in self._since(now - 1)]
        if len(lately) > 30:
            self.violations.append(f"{len(lately)} messages within a second")
        here = [at for at, where in self._since(now - 60) if where == chat]
        if len(here) > 1 and here[0] - here[1] < 1.0:
            self.violations.append(f"two messages to chat {chat} within {here[0] - here[1]:.3f} s")
        if chat < 0 and len(here) > 20:
            self.violations.append(f"{len(here)} messages to group {chat} within a minute")

    def _since(self, first: float) -> Iterator[tuple[float, int]]:
        """The latest first."""
        for at, where in reversed(self._spoken):
            if at <= first:
                return
            yield at, where

    def _as_json(self, shown: Shown) -> dict[str, Any]:
        result: dict[str, Any] = {
            "message_id": shown.id,
            "date": 1_700_000_000,
            "chat": _chat(shown.chat),
            "from": _user(shown.by),
            "text": shown.text,
        }
        if entities := _entities(shown.text):
            result["entities"] = entities
        if shown.thread is not None:
            result |= {"message_thread_id": shown.thread, "is_topic_message": True}
        if shown.keyboard:
            result["reply_markup"] = {"inline_keyboard": shown.keyboard}
        if shown.reply_to is not None:
            result["reply_to_message"] = self._as_json(self.message(shown.chat, shown.reply_to))
        return result


class _Page(HTMLParser):
    """As strict as Telegram about tags: known ones only, properly nested."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.shown = ""
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _TAGS:
            raise Refusal(400, f'Bad Request: can\'t parse entities: Unsupported start tag "{tag}"')
        if tag == "blockquote" and tag in self.open:
            raise Refusal(400, "Bad Request: can't parse entities: nested blockquote")
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            raise Refusal(400, f"Bad Request: can't parse entities: Unmatched end tag {tag}")

    def handle_data(self, data: str) -> None:
        self.shown += data

    def handle_comment(self, data: str) -> None:
        raise Refusal(400, "Bad Request: can't parse entities: Unsupported start tag")


def visible_text(markup: str) -> str:
    page = _Page()
    page.feed(markup)
    page.close()
    if page.open:
        raise Refusal(400, f"Bad Request: can't parse entities: Can't find end tag corresponding to {page.open[-1]}")
    return page.shown


def _keyboard(about: dict[str, Any]) -> list[list[dict[str, str]]]:
    rows: list[list[dict[str, str]]] = (about.get("reply_markup") or {}).get("inline_keyboard") or []
    for row in rows:
        for button in row:
            if not 1 <= len(button.get("callback_data", "").encode()) <= 64:
                raise Refusal(400, "Bad Request: BUTTON_DATA_INVALID")
    return rows


def _entities(text: str) -> list[dict[str, Any]]:
    at = text.find(f"@{BOT_NAME}")
    if at < 0:
        return []
    offset = len(text[:at].encode("utf-16-le")) // 2
    return [{"type": "mention", "offset": offset, "length": len(BOT_NAME) + 1}]


def _chat(chat: int) -> dict[str, Any]:
    if chat < 0:
        return {"id": chat, "type": "supergroup", "title": f"group {-chat}"}
    return {"id": chat, "type": "private", "first_name": f"person {chat}"}


def _user(user: int) -> dict[str, Any]:
    if user == BOT_ID:
        return {"id": BOT_ID, "is_bot": True, "first_name": "Hermes", "username": BOT_NAME}
    return {"id": user, "is_bot": False, "first_name": f"person {user}"}


def _int(value: Any) -> int | None:
    return None if value is None else int(value)
