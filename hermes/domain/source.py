"""Origin of a message: platform, person and place."""

from __future__ import annotations

from hermes.domain.access.role import Role, assumed
from hermes.domain.ids import SessionId, SessionKey
from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Place on a chat platform."""

    platform: str
    chat: str
    thread: str = ""
    message: str = ""  # the platform's id of the message that it answers

    @property
    def words(self) -> str:
        """Return the chat as a person reads it."""
        thread = f", thread {self.thread}" if self.thread else ""
        return f"{self.platform}, chat {self.chat}{thread}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """Move of a conversation to another chat. Its earlier chat leads to it as well."""

    key: SessionKey  # of the chat that it moves to
    place: Place
    reason: str
    origin: Place | None = None  # None: a terminal or a client of the API
    origin_key: SessionKey = SessionKey("")
    replaced: SessionId | None = None  # the session that the key led to before


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatContext:
    """Chat and person of a conversation, as the platform reports them. Names are untrusted text."""

    kind: str = ""  # of chat: dm, group, channel or thread
    chat: str = ""  # the chat's name
    person: str = ""  # the person's name, where the conversation is theirs alone
    shared: bool = False  # several people write in it: each message begins with its author's name


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Origin of a message: platform, person and place."""

    platform: str
    user: str = ""
    automatic: bool = False  # not written by a person: does not postpone a reset or begin a conversation
    place: Place | None = None  # where to send the answer; None: the client waits for it
    company: ChatContext | None = None  # of the conversation that it begins; None: unknown
    role: Role | None = None  # of the person; None: stored before there were roles
    name: str = ""  # of the person, as the platform shows it

    @property
    def standing(self) -> Role:
        """Return the person's role. If none is stored: guest, or owner on the owner's surfaces."""
        return self.role or assumed(self.platform)

    @property
    def by(self) -> str:
        """Return platform and user as one word."""
        return ":".join(filter(None, (self.platform, self.user)))
