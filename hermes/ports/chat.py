"""Chat ports: platform, adapter, intake of inbound messages, and outbox."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from enum import StrEnum
from typing import Protocol, runtime_checkable

from hermes.domain.ids import InboundKey
from hermes.domain.outbox_message import DeadLetter, DeliveredMessage, OutboxMessage
from hermes.domain.source import Place
from hermes.domain.turn.submission import Seen
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """Capabilities of a chat platform."""

    edit: bool = False  # a sent message can be edited
    find: bool = False  # a sent message can be looked up
    typing: bool = False
    buttons: bool = False
    show_every_s: float = 1.0  # minimum interval between edits of a growing reply, per chat
    splits_at: int = 0  # UTF-16 units at which clients split pasted text; 0 if they do not split
    files: bool = False  # files can be sent
    delete: bool = False  # a sent message can be deleted


class Platform(Protocol):
    """Sends messages on one chat platform. All methods raise DeliveryError only."""

    @property
    def name(self) -> str: ...
    @property
    def abilities(self) -> Abilities: ...
    def parts(self, text: str) -> Sequence[str]:
        """Split the text into messages of an allowed size. Pure, deterministic, never empty."""

    async def ready(self, place: Place) -> None:
        """Wait until the rate limits allow the next message at this place. Sends nothing."""

    async def send(self, outgoing: OutboxMessage, text: str) -> str:
        """Send a new message with its choices, if any. Returns the message id."""

    async def send_file(self, outgoing: OutboxMessage, path: str, text: str) -> str:
        """Send a file as a separate message; `text` may be empty. Returns the message id.

        Raises UnsendableFileError if this file can never be sent. Requires `abilities.files`.
        """

    async def edit(self, outgoing: OutboxMessage, message: str, text: str) -> None:
        """Replace the text of a sent message. An unchanged text is not an error."""

    async def delete(self, outgoing: OutboxMessage, message: str) -> None:
        """Delete a sent message. Requires `abilities.delete`."""

    async def find(self, outgoing: OutboxMessage, part: int) -> str | None:
        """Return the id of that part if it has arrived, else None. Requires `abilities.find`."""

    async def show_typing(self, place: Place) -> None: ...
    async def show_waiting(self, place: Place, *, over: bool = False) -> None:
        """Mark a person's message as waiting, or remove the mark if `over`. May do nothing."""


class ChatAdapter(Protocol):
    """Connection to one chat platform, inbound and outbound."""

    @property
    def platform(self) -> Platform: ...
    async def run(self, intake: ChatIntake) -> None:
        """Receive messages until cancelled. Raises the error that ended it; the caller runs it again later."""

    async def close(self) -> None: ...


class ChatIntake(Protocol):
    """Takes inbound messages from an adapter. A call returns when its data is on disk and can be acknowledged."""

    def alive(self) -> None:
        """Report that the platform has answered. This is the health signal."""

    def trouble(self, part: str, problem: str) -> None:
        """Report a problem of one part of the connection, such as a workspace. An empty problem clears it."""

    async def take(self, inbound: Inbound) -> str:
        """Take a message, command or button press.

        Returns a text that only the sender may see now, such as why a button did nothing; usually empty.
        Raises StoppingError, BusyError or StorageErrors if it was not stored; try again.
        """

    async def chat_moved(self, old: str, new: str) -> None:
        """Record that the platform gave a chat a new id. Its conversations continue. Raises as `take` does."""

    async def former_id(self, chat: str) -> str:
        """Return the first id of a chat that has moved, else an empty string. Raises as `take` does."""

    async def places(self, platform: str, most: int) -> Sequence[Place]:
        """Return the places of the latest conversations, newest first. Reads at most `most` sessions."""

    async def noted(self, name: str) -> bytes | None:
        """Return the bytes that the adapter saved under this name."""

    async def note(self, name: str, value: bytes) -> None:
        """Save bytes for the next boot. Raises StorageErrors if they were not saved."""


class Outbox(Protocol):
    """Messages to people outside of a session. Each call returns when its data is on disk."""

    async def enqueue(self, outgoing: OutboxMessage) -> None:
        """Store the message and have it delivered, unless the id is known already."""

    async def is_known(self, name: str) -> bool:
        """Return True if a message of this id was delivered or waits for delivery."""

    async def see(self, seen: Seen) -> bool:
        """Record an inbound id. Returns True if it is new."""

    async def progress(self, name: str) -> OutboxMessage | DeliveredMessage | DeadLetter | None:
        """Return the message in the outbox, as delivered or as dead letter; None if its id is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that a person sent, as the platform describes it."""

    kind: str  # image, voice, audio, video or file
    file_id: str  # of the platform
    name: str = ""  # given by the sender; never a path
    media_type: str = ""
    size_bytes: int = 0  # 0 if unknown
    seconds: int = 0  # duration of audio and video


@runtime_checkable
class FileSource(Protocol):
    """Downloads files that people send."""

    def fetch(self, attachment: Attachment) -> AsyncGenerator[bytes, None]:
        """Stream the contents. Raises PlatformError."""


@runtime_checkable
class ChatNames(Protocol):
    """Knows the names of chats whose messages do not bring them."""

    async def chat_name(self, place: Place) -> str:
        """Return the name of a chat; empty if the platform does not know it or does not answer. Never raises."""


class ForeignKind(StrEnum):
    QUOTE = "quote"  # the message that this one replies to
    OWN_QUOTE = "own_quote"  # the same, written by the bot
    THREAD = "thread"  # earlier messages of the thread
    FORWARD = "forward"
    STICKER = "sticker"
    CONTACT = "contact"
    LOCATION = "location"
    POLL = "poll"


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """Part of a message that its sender did not write."""

    kind: ForeignKind
    text: str
    by: str = ""  # name of the author, if known


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """A message, command or button press of a person on a chat platform."""

    id: InboundKey  # platform's message id, for exactly-once intake
    place: Place
    user: str
    text: str  # only what the person wrote
    chat_type: str = "dm"  # dm, group, channel or thread
    answers: str = ""  # token of the pressed button; `text` is the choice
    choice: int | None = None  # index of the choice, because `text` may be shortened
    user_name: str = ""
    chat_name: str = ""
    foreign: tuple[Foreign, ...] = ()  # shown to the model before `text`
    mentions: tuple[tuple[str, str], ...] = ()  # id and display name of people that `text` mentions as `@ID`
    edited: bool = False  # replaces the earlier message `place.message`
    deleted: bool = False  # the person deleted the message `place.message`
    attachments: tuple[Attachment, ...] = ()
    pieces: tuple[InboundKey, ...] = ()  # platform id of each attachment, if they came one by one
    former_chat: str = ""  # first id of a chat that has moved; its sessions are stored under it

    @property
    def forwarded(self) -> bool:
        """True for a forwarded message, which is never a command or an answer to a question."""
        return any(each.kind is ForeignKind.FORWARD for each in self.foreign)
