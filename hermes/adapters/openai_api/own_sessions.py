"""Sessions restricted to the caller: the owner reaches all, a named key those that it started.

Every method checks, so that no route can forget it. Sessions of others are reported as unknown. The owner reads and
administers the sessions of named keys, and writes no message into them: the client of that key would read it.
"""

from __future__ import annotations

from hermes.adapters.http.caller import CALLER
from hermes.adapters.http.problem import refusal
from hermes.domain.access.api_key import ApiKey, is_named_key
from hermes.domain.access.role import Role
from hermes.domain.errors import BadInputError, UnknownSessionError
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
from hermes.domain.values import replace
from hermes.ports.sessions import Sessions

_PAGE = 200
_MAX_READ = 10_000  # sessions read in a search for those of one key
_MAX_REMEMBERED = 10_000  # platforms of sessions
_OPEN_FACTS = "response:"  # their names contain a turn id


class OwnSessions(Sessions):
    def __init__(self, inner: Sessions) -> None:
        self._inner = inner
        self._platforms: dict[SessionId, str] = {}

    async def check(self, session: SessionId | None) -> None:
        """Raise UnknownSessionError if the caller may not reach the session. An unused id passes."""
        key = CALLER.get()
        if key is None or session is None:
            return
        try:
            found = [(await self._inner.view(session, exact=exact)).session for exact in (True, False)]
        except UnknownSessionError:
            return
        if not all(key.owns(each) for each in found):
            raise UnknownSessionError(f"there is no session {session}")

    async def check_writer(self, session: SessionId | None) -> None:
        """Raise an error if the caller may not take part in the session. An unused id passes."""
        await self.check(session)
        if CALLER.get() is not None or session is None:
            return
        try:
            platform = await self._inner.platform(session)
        except UnknownSessionError:
            return
        if is_named_key(platform):
            message = f"The session {session} belongs to another API key. Nothing was stored; choose another id."
            raise BadInputError(message, param="session_id", code="session_of_another_key")

    async def submit(self, submission: Submission) -> Receipt:
        await self.check_writer(submission.session)
        return await self._inner.submit(submission)

    async def rewrite(self, session: SessionId, place: Place, message: EncodedMessage, role: Role) -> Session:
        await self.check_writer(session)
        return await self._inner.rewrite(session, place, message, role)

    async def accepted(self, submission: Submission) -> Receipt | None:
        await self.check_writer(submission.session)
        return await self._inner.accepted(submission)

    async def locate(self, seen: Seen) -> None:
        await self.check_writer(seen.session)
        await self._inner.locate(seen)

    async def located(self, key: InboundKey) -> Seen | None:
        found = await self._inner.located(key)
        await self.check(found.session if found is not None else None)
        return found

    async def note_command(self, submission: Submission) -> Receipt | None:
        await self.check_writer(submission.session)
        return await self._inner.note_command(submission)

    async def note_reply(self, submission: Submission, reply: bytes) -> None:
        await self.check(submission.session)
        await self._inner.note_reply(submission, reply)

    async def reply_of(self, command: InboundKey) -> bytes | None:
        return await self._inner.reply_of(command)  # each key has separate inbound ids

    async def outcome(self, session: SessionId, turn: TurnId) -> TurnOutcome | None:
        await self.check(session)
        return await self._inner.outcome(session, turn)

    async def begin(
        self, source: Source, *, session: SessionId | None = None, key: SessionKey | None = None, title: str = ""
    ) -> Session:
        await self.check_writer(session)
        return await self._inner.begin(source, session=session, key=key, title=title)

    async def bound(self, key: SessionKey) -> SessionId | None:
        found = await self._inner.bound(key)
        await self.check(found)
        return found

    async def conversation(self, session: SessionId) -> Session:
        await self.check(session)
        return await self._inner.conversation(session)

    async def platform(self, session: SessionId) -> str:
        await self.check(session)
        return await self._inner.platform(session)

    async def view(self, session: SessionId, *, exact: bool = False) -> SessionView:
        await self.check(session)
        return await self._inner.view(session, exact=exact)

    async def messages(
        self, session: SessionId, after: Seq | None, limit: int, *, exact: bool = False, before: Seq | None = None
    ) -> list[StoredMessage]:
        await self.check(session)
        return await self._inner.messages(session, after, limit, exact=exact, before=before)

    async def recent(self, limit: int, after: SessionId | Activity | None = None) -> list[Session]:
        key = CALLER.get()
        if key is None:
            return await self._inner.recent(limit, after)
        await self.check(None if isinstance(after, tuple) else after)
        return await self._recent_of(key, limit, after)

    async def _recent_of(self, key: ApiKey, limit: int, after: SessionId | Activity | None) -> list[Session]:
        found: list[Session] = []
        for _ in range(_MAX_READ // _PAGE):
            page = await self._inner.recent(_PAGE, after)
            found += [session for session in page if key.owns(session)]
            if len(found) >= limit or len(page) < _PAGE:
                break
            after = (page[-1].active_at, page[-1].id)
        return found[:limit]

    async def stop_turn(
        self,
        session: SessionId,
        reason: str,
        turn: TurnId | None = None,
        *,
        by: Place | None = None,
        who: str = "",
    ) -> Session:
        await self.check(session)
        return await self._inner.stop_turn(session, reason, turn, by=by, who=who)

    async def end(self, session: SessionId, reason: str, *, by: Place | None = None, who: str = "") -> Session:
        await self.check(session)
        return await self._inner.end(session, reason, by=by, who=who)

    async def hand_over(self, session: SessionId, wish: HandOver) -> Session:
        await self.check(session)
        return await self._inner.hand_over(session, wish)

    async def post(self, session: SessionId, wish: NotePost) -> Session:
        await self.check(session)
        return await self._inner.post(session, wish)

    async def suspend(self, session: SessionId, reason: str) -> Session:
        await self.check(session)
        return await self._inner.suspend(session, reason)

    async def resume(self, session: SessionId, reason: str, key: SessionKey | None = None) -> Session:
        await self.check(session)
        return await self._inner.resume(session, reason, key)

    async def answer(self, session: SessionId, answer: str, source: Source, call: str = "") -> Session:
        await self.check(session)
        return await self._inner.answer(session, answer, source, call)

    async def prefer(self, session: SessionId, name: str, value: str | bool, reason: str) -> Session:
        await self.check(session)
        return await self._inner.prefer(session, name, value, reason)

    async def compress(self, session: SessionId, focus: str = "") -> Session:
        await self.check(session)
        return await self._inner.compress(session, focus)

    async def branch(
        self, session: SessionId, title: str = "", *, move_key: bool = False, after: TurnId | None = None
    ) -> Session:
        await (self.check(session) if after is None else self.check_writer(session))  # after a turn: for a message
        return await self._inner.branch(session, title, move_key=move_key, after=after)

    async def undo(self, session: SessionId, turns: int = 1) -> Session:
        await self.check(session)
        return await self._inner.undo(session, turns)

    async def retry(self, session: SessionId, turn: TurnId, source: Source) -> Receipt:
        await self.check(session)
        return await self._inner.retry(session, turn, source)

    async def records(self, session: SessionId, turn: TurnId) -> list[TurnRecord]:
        await self.check(session)
        return await self._inner.records(session, turn)

    async def journal(self, after: int, limit: int) -> JournalPage:
        page = await self._inner.journal(after, limit)
        key = CALLER.get()
        if key is None:
            return page
        return replace(page, entries=[each for each in page.entries if await self._owns(key, each.session)])

    def journal_end(self) -> int:
        return self._inner.journal_end()

    async def _owns(self, key: ApiKey, session: SessionId) -> bool:
        """Return whether a key started a session. A session never changes its platform."""
        if session not in self._platforms:
            try:
                self._platforms[session] = (await self._inner.conversation(session)).platform
            except UnknownSessionError:  # erased meanwhile
                return False
            while len(self._platforms) > _MAX_REMEMBERED:
                del self._platforms[next(iter(self._platforms))]
        return self._platforms[session] == key.platform

    async def unfinished(self) -> list[Session]:
        key, found = CALLER.get(), await self._inner.unfinished()
        return found if key is None else [session for session in found if key.owns(session)]

    async def fact(self, name: str) -> bytes | None:
        _check_fact(name)
        return await self._inner.fact(name)

    async def remember(self, name: str, value: bytes | None) -> None:
        _check_fact(name)
        await self._inner.remember(name, value)

    async def erase(self, session: SessionId) -> None:
        await self.check(session)
        await self._inner.erase(session)

    # ------------------------------------------------------------ owner only

    async def awaiting_approval(self) -> list[Session]:
        _check_owner()
        return await self._inner.awaiting_approval()

    async def used(self, first_day: str) -> list[Tally]:
        _check_owner()
        return await self._inner.used(first_day)

    async def trace(self, name: str, limit: int) -> list[TraceLine]:
        _check_owner()
        return await self._inner.trace(name, limit)

    async def granted(self) -> list[str]:
        _check_owner()
        return await self._inner.granted()

    async def withdraw(self, kind: str) -> None:
        _check_owner()
        await self._inner.withdraw(kind)

    async def dead_letters(self) -> list[DeadLetter]:
        _check_owner()
        return await self._inner.dead_letters()

    async def replay(self, dead_letter: str) -> Receipt:
        _check_owner()
        return await self._inner.replay(dead_letter)


def _check_fact(name: str) -> None:
    if not name.startswith(_OPEN_FACTS):
        _check_owner()


def _check_owner() -> None:
    if CALLER.get() is not None:
        raise refusal(403, "not_for_this_key", "This is for the owner's key only.")
