"""Who gives a command, and what comes back."""

from __future__ import annotations

from hermes.domain.access.role import Role
from hermes.domain.submission import Receipt
from hermes.domain.types import InboundKey, Session, SessionId, SessionKey, Source
from hermes.domain.values import dataclass

YES, NO = "yes", "no"  # to a command that asks first


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCaller:
    """Who gives the command, and in which conversation: the session, or else what the key means now."""

    source: Source
    session: SessionId | None = None
    key: SessionKey | None = None
    inbound: InboundKey | None = None  # the source's own id of it: /queue and /steer twice are one message
    has_buttons: bool = False  # what cannot be taken back is asked about first
    speaker: str = ""  # their name as the model is shown it, where several people share the conversation

    @property
    def role(self) -> Role:
        return self.source.standing

    @property
    def is_owner(self) -> bool:
        return self.role is Role.OWNER

    def may_take(self, session: Session) -> bool:
        """Whether the session is the caller's to see and to take up."""
        if self.is_owner:
            return True
        if session.platform != self.source.platform or session.owner != self.source.user:
            return False
        return bool(self.source.user) or session.key == self.key

    def may_decide(self, session: Session) -> bool:
        """Whether the caller may say what runs in it: in a shared chat only whoever began it."""
        return self.is_owner or session.owner in ("", self.source.user)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReply:
    text: str  # plain, for a terminal and a chat alike
    ok: bool = True  # False: nothing was done, and the text says why
    session: SessionId | None = None  # where the conversation is from now on, if that has changed
    receipt: Receipt | None = None  # of the turn that this began, queued or steered
    title: str = ""  # of the rows
    rows: tuple[tuple[str, ...], ...] = ()  # the same as a table, its headings first
    choices: tuple[str, ...] = ()  # what the command can be given instead, for buttons


def refused(text: str) -> CommandReply:
    return CommandReply(text=text, ok=False)
