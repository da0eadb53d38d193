"""Sessions, as adapters see them."""

from __future__ import annotations

from typing import Protocol

from hermes.domain.access.role import Role
from hermes.domain.events import TurnOutcome
from hermes.domain.operations import Tally
from hermes.domain.read.views import SessionView, StoredMessage, TurnRecord
from hermes.domain.submission import Receipt, Submission
from hermes.domain.trace import TraceLine
from hermes.domain.types import (
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
        self,
        session: SessionId,
        reason: str,
        turn: TurnId | None = None,
        *,
        by: Place | None = None,
        who: str = "",
    ) -> Session:
        """Stop a turn. `by`: the chat that requested it, which gets no notice. `who`: platform and user."""

    async def end(self, session: SessionId, reason: str, *, by: Place | None = None, who: str = "") -> Session:
        """End the session. `by` and `who`: see `stop_turn`."""

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
