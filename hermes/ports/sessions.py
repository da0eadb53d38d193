"""Sessions, as adapters see them."""

from __future__ import annotations

from typing import Protocol

from hermes.events import TurnOutcome
from hermes.ports.storage import Tally
from hermes.records import Record
from hermes.role import Role
from hermes.trace import TraceLine
from hermes.types import (
    DeadLetter,
    EncodedMessage,
    InboundKey,
    Place,
    Seq,
    Session,
    SessionId,
    SessionKey,
    Source,
    TurnId,
)
from hermes.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A person's message on its way in. `session` or `key` says which conversation; neither: a fresh one."""

    turn: TurnId
    messages: tuple[EncodedMessage, ...]  # earlier history first, if the sender brings it; the new one last
    source: Source
    session: SessionId | None = None
    key: SessionKey | None = None
    options: bytes = b"{}"
    inbound: InboundKey | None = None  # the source's own id of it, for exactly-once
    also: tuple[InboundKey, ...] = ()  # under which more of it came; none of them was accepted before
    fingerprint: bytes = b""
    busy: str = ""  # what it does to a turn in flight: queue, steer or interrupt; empty: as configured
    joins: TurnId | None = None  # it is the rest of that message, which a client split; if that still waits
    more_s: float = 0.0  # how long its turn is held for the rest of it
    said: str = ""  # the person's own words, where the message has more than these: only they can answer a question
    opening: tuple[EncodedMessage, ...] = ()  # instructions that go first if this is the session's first message
    may_answer: bool = True  # False: it brings a forwarded message, which answers no question


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """The message is durable. A duplicate's receipt names the turn that was accepted the first time."""

    session: SessionId
    turn: TurnId
    position: int = 0  # how many turns go first
    duplicate: bool = False
    notice: str = ""  # for the person: why this is a fresh session, say
    handling: str = "started"  # or queued, steering, interrupting, joined, answer
    into: TurnId | None = None  # the turn that it is the answer for
    opened: bool = False  # the opening was taken


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionView:
    session: Session
    why: str
    lineage: tuple[SessionId, ...]  # oldest ancestor first, this session last
    live: bool  # an actor holds it in memory
    mailbox: int = 0
    reset: str = ""  # when it will be reset, and what keeps it from that


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredMessage:
    seq: Seq
    at: float
    turn: TurnId
    message: EncodedMessage
    note: bool = False  # of the system: the model has it as a user's message, and nobody said it
    by: str = ""  # who said it: name, platform and user, role; empty: nobody, or stored before there were roles
    answered: str = ""  # of a tool's result: what was answered when it was asked about, and by whom


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    session: SessionId
    seq: Seq
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class ActorView:
    kind: str
    name: str
    state: str  # "running", "stopping", "parked"; of a session its phase
    mailbox: int
    oldest_s: float  # age of the oldest waiting message
    handled: int
    slowest_s: float
    age_s: float
    last_error: str = ""


class Sessions(Protocol):
    """The front desk. Each call raises HermesErrors only."""

    async def submit(self, submission: Submission) -> Receipt: ...
    async def rewrite(self, session: SessionId, place: Place, message: EncodedMessage, role: Role) -> Session:
        """Replace what a person of that role said at that place. Refused unless it still waits for its turn."""

    async def accepted(self, submission: Submission) -> Receipt | None:
        """The receipt of a message that was accepted before under the same inbound id; None: it was not."""

    async def note_command(self, submission: Submission) -> Receipt | None:
        """Take note of a command's inbound id before it is carried out. Its receipt if it came before."""

    async def note_reply(self, submission: Submission, reply: bytes) -> None:
        """What that command was answered, for whoever repeats it."""

    async def reply_of(self, command: InboundKey) -> bytes | None:
        """None: nobody knows whether it was carried out."""

    async def outcome(self, session: SessionId, turn: TurnId) -> TurnOutcome | None:
        """What the journal says about a turn; None while it has not ended."""

    async def begin(
        self, source: Source, *, session: SessionId | None = None, key: SessionKey | None = None, title: str = ""
    ) -> Session:
        """A fresh session there, before anybody has said anything in it; the one that is open there, if one is."""

    async def bound(self, key: SessionKey) -> SessionId | None: ...  # what the key means now
    async def conversation(self, session: SessionId) -> Session:
        """That very session, or what it was compressed into: not a fresh one that was begun after it."""

    async def view(self, session: SessionId, *, exact: bool = False) -> SessionView:
        """The live end of that id's lineage; `exact`: that very session."""

    async def messages(
        self, session: SessionId, after: Seq | None, limit: int, *, exact: bool = False
    ) -> list[StoredMessage]:
        """The transcript after that place, oldest first; `after=None` means the last of it.

        About `limit` of them: fewer when they are large, more when several share the last place.
        """

    async def recent(self, limit: int, after: SessionId | None = None) -> list[Session]: ...
    async def stop_turn(
        self, session: SessionId, reason: str, turn: TurnId | None = None, *, by: Place | None = None
    ) -> Session:
        """`by`: the place where that was wished; in that chat nobody is told of it once more."""

    async def end(self, session: SessionId, reason: str, *, by: Place | None = None) -> Session:
        """`by`: as with `stop_turn`."""

    async def suspend(self, session: SessionId, reason: str) -> Session: ...
    async def resume(self, session: SessionId, reason: str, key: SessionKey | None = None) -> Session: ...
    async def answer(self, session: SessionId, answer: str, source: Source, call: str = "") -> Session: ...
    async def awaiting_approval(self) -> list[Session]:
        """Those that wait for the owner or an admin to approve something."""

    async def prefer(self, session: SessionId, name: str, value: str | bool, reason: str) -> Session: ...
    async def compress(self, session: SessionId, focus: str = "") -> Session: ...
    async def branch(
        self, session: SessionId, title: str = "", *, move_key: bool = False, after: TurnId | None = None
    ) -> Session:
        """A session of its own that begins with a copy of this one: whole, or up to the end of that turn."""

    async def undo(self, session: SessionId, turns: int = 1) -> Session: ...
    async def retry(self, session: SessionId, turn: TurnId, source: Source) -> Receipt: ...
    async def used(self, first_day: str) -> list[Tally]: ...
    async def records(self, session: SessionId, turn: TurnId) -> list[TurnRecord]: ...
    async def trace(self, name: str, limit: int) -> list[TraceLine]:
        """What became of a message, by any id of it, or of the last messages of a session; oldest first."""

    async def fact(self, name: str) -> bytes | None: ...
    async def remember(self, name: str, value: bytes | None) -> None: ...
    async def granted(self) -> list[str]: ...  # kinds of commands that were allowed for good
    async def withdraw(self, kind: str) -> None: ...
    async def erase(self, session: SessionId) -> None: ...
    async def dead_letters(self) -> list[DeadLetter]: ...
    async def replay(self, dead_letter: str) -> Receipt: ...
