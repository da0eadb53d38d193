"""Messages between a session, the directory and its callers, and the services that all sessions share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field

from hermes.actors.kernel.future import LoopFuture
from hermes.actors.reset.after_reset import AfterReset
from hermes.actors.reset.reset_rules import ResetRules
from hermes.domain.child.child import ChildDuty
from hermes.domain.errors import HermesError
from hermes.domain.ids import SessionId
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.read.lineage import NOWHERE, Address
from hermes.domain.session.protocol import Event, Request, TurnLimits
from hermes.domain.session.state import Session
from hermes.domain.values import dataclass
from hermes.ports.agent import Agent
from hermes.ports.given import Clock
from hermes.ports.hub import Hub
from hermes.ports.storage import Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """An event for a session, and the future of its sender. `notice` goes back with the receipt.

    `judged`: the reset policy was checked for this message.
    """

    event: Event | Request
    address: Address = NOWHERE
    reply: LoopFuture | None = None
    notice: str = ""
    judged: bool = False


def fail(post: Post, error: HermesError) -> None:
    """Answer the sender with an error, if one waits."""
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
    """To the directory: another writer changed this session. It leaves memory and must be read again."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class MayLeave:
    """To the directory: this session is not needed in memory."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class StayedBusy:
    """Answer to Passivate: the session has work."""

    session: SessionId


@dataclass(frozen=True, slots=True, kw_only=True)
class Returned:
    """To the directory: a message that this session cannot take and that must be routed again."""

    session: SessionId
    post: Post
    moved: bool  # the session takes no more messages


@dataclass(frozen=True, slots=True, kw_only=True)
class Succeeded:
    """To the directory: this session has ended, and `child` continues its open work."""

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
    """To the directory: places where the owner and the admins are asked for approval. None: removed."""

    facts: Mapping[str, bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionServices:
    """Services that all sessions share; one object, so that an idle session stays small."""

    journal: Journal
    agent: Agent
    hub: Hub
    clock: Clock
    new_session: Callable[[float], SessionId]
    tell_directory: Callable[[object], None]
    limits: Callable[[], TurnLimits]
    resets: ResetRules
    was_reset: AfterReset
    deliver: Callable[[Sequence[OutboxMessage]], None]  # takes outbox messages that are on disk
    start_children: Callable[[Sequence[ChildDuty]], None]  # starts those whose duties are on disk
    heads: dict[SessionId, Session] = field(default_factory=dict)  # of the sessions in memory, as on disk
