"""Caller and reply of a slash command."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.domain.access.role import Role
from hermes.domain.ids import InboundKey, SessionId, SessionKey
from hermes.domain.session.state import Session
from hermes.domain.source import Source
from hermes.domain.turn.submission import Receipt
from hermes.domain.values import dataclass
from hermes.services.commands.registry import SlashCommand

YES, NO = "yes", "no"  # answers to a command that asks for confirmation


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCaller:
    """Sender of a command and its conversation: the session, or else the session that the key refers to."""

    source: Source
    session: SessionId | None = None
    key: SessionKey | None = None
    inbound: InboundKey | None = None  # source's message id: a repeated /queue or /steer is one message
    has_buttons: bool = False  # commands with lasting effects ask for confirmation
    speaker: str = ""  # name shown to the model in shared conversations

    @property
    def role(self) -> Role:
        return self.source.standing

    @property
    def is_owner(self) -> bool:
        return self.role is Role.OWNER

    def may_take(self, session: Session) -> bool:
        """Return True if the caller may see and resume the session."""
        if self.is_owner:
            return True
        if session.platform != self.source.platform or session.owner != self.source.user:
            return False
        return bool(self.source.user) or session.key == self.key

    def may_decide(self, session: Session) -> bool:
        """Return True if the caller decides what runs in the session: in a shared chat only its starter."""
        return self.is_owner or session.owner in ("", self.source.user)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReply:
    text: str  # plain, for terminals and chats
    ok: bool = True  # False: nothing was done, and the text tells why
    session: SessionId | None = None  # the conversation's new session, if it has changed
    receipt: Receipt | None = None  # turn that this started, queued or steered
    title: str = ""  # title of the rows
    rows: tuple[tuple[str, ...], ...] = ()  # the text as a table, headings first
    choices: tuple[str, ...] = ()  # arguments to offer as buttons


def confirmation(command: SlashCommand, choices: Sequence[str]) -> tuple[str, str] | None:
    """Return the arguments for yes and no, if a reply with these choices asks for confirmation."""
    return (choices[0], choices[1]) if command.confirms and len(choices) == len((YES, NO)) else None


def refused(text: str) -> CommandReply:
    return CommandReply(text=text, ok=False)
