"""What goes between a session, the directory and whoever talks to sessions, and what all sessions share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from hermes.actors.after_reset import AfterReset
from hermes.actors.kernel.future import LoopFuture
from hermes.actors.reset_rules import ResetRules
from hermes.domain.errors import HermesError
from hermes.domain.read.lineage import NOWHERE, Address
from hermes.domain.session.protocol import Event, Request, TurnLimits
from hermes.domain.types import OutboxMessage, Session, SessionId
from hermes.domain.values import dataclass
from hermes.ports.agent import Agent
from hermes.ports.given import Clock
from hermes.ports.hub import Hub
from hermes.ports.storage import Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What happens to a session, and who waits for the answer. `notice` goes back with the receipt.

    A message is judged before it counts: `judged` says that the reset policy was asked.
    """

    event: Event | Request
    address: Address = NOWHERE
    reply: LoopFuture | None = None
    notice: str = ""
    judged: bool = False


def fail(post: Post, error: HermesError) -> None:
    """Tell whoever waits for it, if anybody does."""
    if post.reply is not None:
        post.reply.settle(None, error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passivate:
    """Leave memory if nothing is in flight."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Born:
    """To the directory: this session is on disk from now on, and so is the key that means it."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Outdated:
    """To the directory: somebody else has written to this session. It leaves, and has to be read anew."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class MayLeave:
    """To the directory: nobody has any use for this session."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class StayedBusy:
    """The answer to Passivate of a session that has work."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """A message that this session could not take: told to the directory, which knows where it goes now."""

    session: SessionId
    post: Post
    moved: bool  # the session takes no more messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeeded:
    """To the directory: this session has ended, and that one goes on with whatever was open in it."""

    session: SessionId
    child: Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Granted:
    """To the directory: these rules are allowed in every session from now on."""

    rules: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked:
    """To the directory: these rules are asked about again."""

    rules: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproverPlaces:
    """To the directory: what is known of where the owner and the admins are asked. None: forgotten."""

    facts: Mapping[str, bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionServices:
    """What all sessions share; one object, so that an idle session stays small."""

    journal: Journal
    agent: Agent
    hub: Hub
    clock: Clock
    new_session: Callable[[float], SessionId]
    tell_directory: Callable[[object], None]
    limits: Callable[[], TurnLimits]
    resets: ResetRules
    was_reset: AfterReset
    deliver: Callable[[Sequence[OutboxMessage]], None]  # what is on disk and now to be said
