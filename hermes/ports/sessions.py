"""Session port: what adapters and commands can do with sessions."""

from __future__ import annotations

from typing import Protocol

from hermes.domain.access.role import Role
from hermes.domain.events import TurnOutcome
from hermes.domain.ids import InboundKey, Seq, SessionId, SessionKey, TurnId
from hermes.domain.operations import Tally
from hermes.domain.outbox_message import DeadLetter
from hermes.domain.read.reader import Activity
from hermes.domain.read.trace import TraceLine
from hermes.domain.read.views import JournalPage, SessionView, StoredMessage, TurnRecord
from hermes.domain.session.protocol import HandOver, NotePost
from hermes.domain.session.state import Session
from hermes.domain.source import Place, Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Receipt, Seen, Submission


class Sessions(Protocol):
    """Sends messages and requests to sessions and reads what is stored. All methods raise HermesErrors only."""

    async def submit(self, submission: Submission) -> Receipt: ...
    async def rewrite(self, session: SessionId, place: Place, message: EncodedMessage, role: Role) -> Session:
        """Replace the message of a person at a place. Refused unless it still waits for its turn."""

    async def accepted(self, submission: Submission) -> Receipt | None:
        """Return the receipt of a message that was accepted earlier under this inbound id, if any."""

    async def located(self, key: InboundKey) -> Seen | None:
        """Return the turn that a key of a client's history or request leads to."""

    async def locate(self, seen: Seen) -> None:
        """Let a key lead to this turn from now on."""

    async def note_command(self, submission: Submission) -> Receipt | None:
        """Record a command's inbound id before the command runs. Returns its receipt if it came before."""

    async def note_reply(self, submission: Submission, reply: bytes) -> None:
        """Store a command's reply, for clients that repeat the command."""

    async def reply_of(self, command: InboundKey) -> bytes | None:
        """Return the stored reply of a command. None: it is unknown if the command was carried out."""

    async def outcome(self, session: SessionId, turn: TurnId) -> TurnOutcome | None:
        """Return the stored outcome of a turn; None if the turn has not ended."""

    async def begin(
        self, source: Source, *, session: SessionId | None = None, key: SessionKey | None = None, title: str = ""
    ) -> Session:
        """Open an empty session, or return the one that is open there."""

    async def bound(self, key: SessionKey) -> SessionId | None: ...  # session that the key refers to
    async def conversation(self, session: SessionId) -> Session:
        """Return this session, or the last one it was compressed into. Never a fresh session that followed it."""

    async def platform(self, session: SessionId) -> str:
        """Return the platform of the live end of the session's lineage. One in memory is not read from the store."""

    async def view(self, session: SessionId, *, exact: bool = False) -> SessionView:
        """Return the live end of the session's lineage, or with `exact` this session."""

    async def messages(
        self, session: SessionId, after: Seq | None, limit: int, *, exact: bool = False, before: Seq | None = None
    ) -> list[StoredMessage]:
        """Return a page of the transcript after a position, oldest first; `after=None` returns the last page.

        `before` returns the last page before a position instead.

        Returns about `limit` messages: fewer if they are large, more if several share the last position.
        """

    async def recent(self, limit: int, after: SessionId | Activity | None = None) -> list[Session]: ...
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

    async def hand_over(self, session: SessionId, wish: HandOver) -> Session:
        """Move an idle conversation to another chat."""

    async def post(self, session: SessionId, wish: NotePost) -> Session:
        """Send a message into the session's chat, once, and show it to the model with the next turn."""

    async def suspend(self, session: SessionId, reason: str) -> Session: ...
    async def resume(self, session: SessionId, reason: str, key: SessionKey | None = None) -> Session: ...
    async def answer(self, session: SessionId, answer: str, source: Source, call: str = "") -> Session: ...
    async def unfinished(self) -> list[Session]:
        """Return the sessions with open work: a turn, a queue or a question."""

    async def awaiting_approval(self) -> list[Session]:
        """Return the sessions that wait for an approval of the owner or an admin."""

    async def prefer(self, session: SessionId, name: str, value: str | bool, reason: str) -> Session: ...
    async def compress(self, session: SessionId, focus: str = "") -> Session: ...
    async def branch(
        self, session: SessionId, title: str = "", *, move_key: bool = False, after: TurnId | None = None
    ) -> Session:
        """Create a session that starts with a copy of this one, whole or up to the end of a turn."""

    async def undo(self, session: SessionId, turns: int = 1) -> Session: ...
    async def retry(self, session: SessionId, turn: TurnId, source: Source) -> Receipt: ...
    async def used(self, first_day: str) -> list[Tally]: ...
    async def records(self, session: SessionId, turn: TurnId) -> list[TurnRecord]: ...
    async def journal(self, after: int, limit: int) -> JournalPage:
        """Read records of all sessions after a position, in the order in which they were written."""

    def journal_end(self) -> int: ...  # position of the newest record
    async def trace(self, name: str, limit: int) -> list[TraceLine]:
        """Trace a message by any of its ids, or the last messages of a session; oldest first."""

    async def fact(self, name: str) -> bytes | None: ...
    async def remember(self, name: str, value: bytes | None) -> None: ...
    async def granted(self) -> list[str]: ...  # command kinds with a standing grant
    async def withdraw(self, kind: str) -> None: ...
    async def erase(self, session: SessionId) -> None: ...
    async def dead_letters(self) -> list[DeadLetter]: ...
    async def replay(self, dead_letter: str) -> Receipt: ...
