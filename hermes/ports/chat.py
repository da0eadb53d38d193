"""Chat platforms: what they can do, what comes in, what goes out."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from enum import StrEnum
from typing import Protocol, runtime_checkable

from hermes.domain.types import DeadLetter, DeliveredMessage, InboundKey, OutboxMessage, Place, Seen
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """What a platform can do, as data."""

    edit: bool = False  # a message can be changed after it was sent
    find: bool = False  # it can be told afterwards whether a message arrived
    typing: bool = False
    buttons: bool = False
    show_every_s: float = 1.0  # how often a growing reply may be shown, in one chat
    splits_at: int = 0  # UTF-16 units at which clients split what people paste; 0: they do not
    files: bool = False  # they can be sent
    delete: bool = False  # a message can be taken away again


class Platform(Protocol):
    """Says things on one chat platform. Everything here raises DeliveryError, and nothing else."""

    @property
    def name(self) -> str: ...
    @property
    def abilities(self) -> Abilities: ...
    def parts(self, text: str) -> Sequence[str]:
        """The text as messages that the platform takes. Pure, never empty; the same text gives the same parts."""

    async def ready(self, place: Place) -> None:
        """Returns when the next message there need not wait for the platform's limits. Nothing is sent by this."""

    async def send(self, outgoing: OutboxMessage, text: str) -> str:
        """A new message at the obligation's place, with its choices where it has some. Returns its id."""

    async def send_file(self, outgoing: OutboxMessage, path: str, text: str) -> str:
        """A file as a message of its own, with a text that may be empty. Returns its id. Raises UnsendableFileError
        when this one can never be sent; the rest can. Only where the abilities say so.
        """

    async def edit(self, outgoing: OutboxMessage, message: str, text: str) -> None:
        """Have a message that was sent say something else. That it says so already is no error."""

    async def delete(self, outgoing: OutboxMessage, message: str) -> None:
        """Take a message away that was sent. Only where the abilities say so."""

    async def find(self, outgoing: OutboxMessage, part: int) -> str | None:
        """The id of that part if it arrived before; None: it did not. Only where the abilities say so."""

    async def show_typing(self, place: Place) -> None: ...
    async def show_waiting(self, place: Place, *, over: bool = False) -> None:
        """A sign at a person's message that it was heard and waits; `over`: it is taken away. Where that is cheap."""


class ChatAdapter(Protocol):
    """A connection to one platform, both ways."""

    @property
    def platform(self) -> Platform: ...
    async def run(self, edge: ChatEdge) -> None:
        """Take messages in until cancelled. Raises what ended it; it is run again after a while."""

    async def close(self) -> None: ...


class ChatEdge(Protocol):
    """Where an adapter hands over what it took in. When a call returns, it is on disk and may be confirmed."""

    def alive(self) -> None:
        """The platform has answered: that is the proof of health."""

    def trouble(self, part: str, problem: str) -> None:
        """What is wrong with a part of the connection, such as a workspace, while the rest works; empty: nothing."""

    async def take(self, inbound: Inbound) -> str:
        """A person wrote. Returns what they alone are to see, now or never: why a button did nothing; mostly empty.

        Raises StoppingError, BusyError and StorageErrors: then it was not taken, try again.
        """

    async def chat_moved(self, old: str, new: str) -> None:
        """The platform calls a chat by another id from now on; its conversations go on. Raises as `take` does."""

    async def former_id(self, chat: str) -> str:
        """What a chat that has moved was called at first; empty: it has not. Raises as `take` does."""

    async def places(self, platform: str, most: int) -> Sequence[Place]:
        """Where the latest conversations there were, the latest first, among so many of all."""

    async def noted(self, name: str) -> bytes | None:
        """What an adapter has noted for its next life."""

    async def note(self, name: str, value: bytes) -> None:
        """Raises StorageErrors: then it was not noted."""


class Outbox(Protocol):
    """What is owed to people without a session. Each call returns when it is on disk."""

    async def enqueue(self, outgoing: OutboxMessage) -> None:
        """Have it said; what was said before under the same id is not said again."""

    async def is_known(self, name: str) -> bool:
        """Whether that was said, or is to be."""

    async def see(self, seen: Seen) -> bool:
        """Whether this inbound id is new; from now on it is not."""

    async def progress(self, name: str) -> OutboxMessage | DeliveredMessage | DeadLetter | None:
        """How far it has come: on its way, met, or given up; None: nobody knows of it (any more)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that a person has sent, as the platform tells it."""

    kind: str  # image, voice, audio, video or file
    file_id: str  # the platform's own
    name: str = ""  # the sender's; never a path
    media_type: str = ""
    size_bytes: int = 0  # 0: nobody says
    seconds: int = 0  # of sound and pictures that move


@runtime_checkable
class FileSource(Protocol):
    """Where the files that people send can be fetched."""

    def fetch(self, attachment: Attachment) -> AsyncGenerator[bytes, None]:
        """What is in it, piece by piece. Raises PlatformError."""


class ForeignKind(StrEnum):
    QUOTE = "quote"  # of the message that this one answers
    OWN_QUOTE = "own_quote"  # the same, and the bot wrote it
    THREAD = "thread"  # earlier messages of a thread
    FORWARD = "forward"
    STICKER = "sticker"
    CONTACT = "contact"
    LOCATION = "location"
    POLL = "poll"


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreign:
    """A part of a message that its sender did not write."""

    kind: ForeignKind
    text: str
    by: str = ""  # the author's name, where it is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Inbound:
    """What a person did on a chat platform: wrote a message, a command, or pressed a button."""

    id: InboundKey  # the platform's own, for exactly-once
    place: Place
    user: str
    text: str  # the person's own words, and nothing else
    chat_type: str = "dm"  # dm, group, channel or thread
    answers: str = ""  # the token of the button that was pressed; `text` is the choice
    choice: int | None = None  # its number among the choices, where `text` may not be all of it
    user_name: str = ""
    chat_name: str = ""
    foreign: tuple[Foreign, ...] = ()  # shown to the model before `text`
    mentions: tuple[tuple[str, str], ...] = ()  # id and display name of people who stand in `text` as `@ID`
    edited: bool = False  # it replaces what the person wrote before as `place.message`
    deleted: bool = False  # the person took back what they wrote as `place.message`
    attachments: tuple[Attachment, ...] = ()
    pieces: tuple[InboundKey, ...] = ()  # the platform's id of each attachment, where they came one by one
    former_chat: str = ""  # not empty: the chat has moved, and its conversations still bear this id

    @property
    def forwarded(self) -> bool:
        """Whether it brings a forwarded message. Then it is never a command, nor an answer to a question."""
        return any(each.kind is ForeignKind.FORWARD for each in self.foreign)
