"""Profile service: feeds the person model after turns, and answers what it believes.

Turns are read one session at a time, in the background, and no turn waits for it. The place up to which a session was
read is stored: a turn that a crash or a failing model left unread is read after the next start or turn.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias

from loguru import logger

from hermes.domain.access.role import Role
from hermes.domain.change import ChangeAuthor
from hermes.domain.errors import BadInputError, HermesError, UnknownSessionError
from hermes.domain.events import TurnAnswered
from hermes.domain.ids import Seq, SessionId, TurnId
from hermes.domain.memory.scope import MemoryScope, ScopeKind, resolved, scope_in
from hermes.domain.profile.belief import Belief
from hermes.domain.profile.conclusion import Spoken
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import MessageReceived, TurnFinished
from hermes.domain.session.state import Session
from hermes.domain.values import dataclass
from hermes.ports.memory import ChangeOrigin
from hermes.ports.profile import PersonModel
from hermes.ports.sessions import Sessions

SEEN: Final = "profile-seen"  # fact: the last record that was read of each session
MAX_SEEN: Final = 500  # sessions
PAGE: Final = 40  # messages read at a time
CATCH_UP: Final = 20  # sessions that a start looks at

Heads: TypeAlias = Callable[[Sequence[SessionId]], Awaitable[Mapping[SessionId, Session]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileSettings:
    provider: str = "none"
    every: int = 1  # turns of a person between two reviews of a session
    prompt_chars: int = 1000
    owner_accounts: tuple[str, ...] = ()

    @property
    def is_on(self) -> bool:
        return self.provider != "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class _TurnRead:
    scope: MemoryScope | None
    by: str
    said: tuple[Spoken, ...]
    last: Seq


def _spoken(stored: TurnRecord) -> Spoken | None:
    """Return what the person or the assistant said in a record; None for other records."""
    match stored.record:
        case MessageReceived(messages=(*_, message)):
            by_person = True
        case TurnFinished(message=message):
            by_person = False
        case _:
            return None
    text = _text(json.loads(message).get("content")).strip() if message else ""
    if not text:
        return None
    record = stored.record
    return Spoken(session=stored.session, turn=record.turn, at=record.at, text=text, by_person=by_person)


def _text(content: object) -> str:
    """Return the text of a message's content, which is a text or a list of parts."""
    if isinstance(content, list):
        return "\n".join(filter(None, map(_text, content)))
    if isinstance(content, dict):
        content = content.get("text")
    return content if isinstance(content, str) else ""


class ProfileService:
    NOTED: Final = (TurnAnswered,)  # events for `note`

    def __init__(
        self, *, sessions: Sessions, heads: Heads, model: PersonModel | None, settings: ProfileSettings
    ) -> None:
        """`model` is None while the profile is off."""
        self.settings = settings
        self.counts: Counter[str] = Counter()  # beliefs that were learned and forgotten, and failures
        self._sessions = sessions
        self._heads = heads
        self._model = model
        self._waiting: dict[SessionId, None] = {}
        self._wake = asyncio.Event()

    # ------------------------------------------------------------ reading

    def scope(self, scope: MemoryScope | None) -> MemoryScope | None:
        """Return the scope to use; None: there is no profile here, or it is off."""
        found = resolved(scope, self.settings.owner_accounts)
        if found is None or found.kind is ScopeKind.CHAT or self._model is None or not self.settings.is_on:
            return None
        return found

    async def beliefs(self, scope: MemoryScope) -> tuple[Belief, ...]:
        return await self._required().beliefs(scope)

    async def people(self) -> tuple[str, ...]:
        """Return the scopes of the people with beliefs, as text."""
        return await self._required().people()

    async def forget(self, scope: MemoryScope, belief: str | None, origin: ChangeOrigin) -> tuple[Belief, ...]:
        gone = await self._required().forget(scope, belief, origin)
        self.counts["forgotten"] += len(gone)
        return gone

    def _required(self) -> PersonModel:
        if self._model is None or not self.settings.is_on:
            raise BadInputError("the profile is off; set profile.provider to builtin or honcho", code="profile_off")
        return self._model

    # ------------------------------------------------------------ learning

    def note(self, event: TurnAnswered) -> None:
        """Remember a finished turn."""
        if self._model is not None and self.settings.is_on:
            self._waiting[event.session] = None
            self._wake.set()

    async def run(self) -> None:
        if self._model is None:
            return
        await self._guarded(self._catch_up())
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                session = next(iter(self._waiting))
                del self._waiting[session]
                await self._guarded(self.learn_from(session))

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except HermesError as error:
            self.counts["failed"] += 1
            logger.info("profile: could not learn, it is tried again after the next turn: {}", error)

    async def _catch_up(self) -> None:
        """Read what earlier boots left unread."""
        for head in await self._sessions.recent(CATCH_UP):
            self._waiting[head.id] = None
        self._wake.set()

    async def learn_from(self, session: SessionId) -> None:
        """Read what is unread in a session, turns of one person at a time."""
        head = (await self._heads([session])).get(session)
        if head is None or head.assignment is not None:
            return
        while True:
            seen = await self._seen()
            turns, more = await self._unread(head, Seq(seen[session]) if session in seen else None)
            theirs = [turn for turn in turns if turn.scope is not None]
            if not turns or (len(theirs) < self.settings.every and not more):
                return
            await self._learn(head, turns)
            await self._mark(session, turns[-1].last)
            if not more:
                return

    async def _learn(self, head: Session, turns: Sequence[_TurnRead]) -> None:
        model = self._required()
        by_scope: dict[MemoryScope, list[_TurnRead]] = {}
        for turn in turns:
            if turn.scope is not None:
                by_scope.setdefault(turn.scope, []).append(turn)
        for scope, theirs in by_scope.items():
            last = theirs[-1]
            origin = ChangeOrigin(
                author=ChangeAuthor.REVIEW,
                operation=f"learn:{head.id}:{last.last}",
                by=last.by,
                session=head.id,
                turn=last.said[-1].turn,
            )
            learned = await model.learn(scope, [each for turn in theirs for each in turn.said], origin)
            self.counts["learned"] += learned
            if learned:
                logger.info("profile: learned from session {}: {} beliefs", head.id, learned)

    async def _unread(self, head: Session, after: Seq | None) -> tuple[list[_TurnRead], bool]:
        """Return the finished turns after a position, and whether there may be more."""
        try:
            messages = await self._sessions.messages(head.id, after, PAGE, exact=True)
        except UnknownSessionError:
            return [], False
        ends: dict[TurnId, Seq] = {}
        for message in messages:
            ends[message.turn] = message.seq
        turns = []
        for turn, last in ends.items():
            if head.turn is not None and head.turn.id == turn:
                break  # it has not ended
            turns.append(await self._turn(head, turn, last))
        return turns, after is not None and len(messages) >= PAGE and bool(turns)

    async def _turn(self, head: Session, turn: TurnId, last: Seq) -> _TurnRead:
        """Return a turn with the scope of its person; without one if nothing may be learned from it."""
        records = await self._sessions.records(head.id, turn)
        sources = [each.record.source for each in records if isinstance(each.record, MessageReceived)]
        scopes = {self._scope_of(head, each.standing, each.by) for each in sources if not each.automatic}
        said = tuple(filter(None, (_spoken(each) for each in records)))
        is_theirs = len(scopes) == 1 and not any(each.automatic for each in sources) and said
        scope = next(iter(scopes)) if is_theirs else None
        return _TurnRead(scope=scope, by=sources[0].by if sources else "", said=said, last=last)

    def _scope_of(self, head: Session, role: Role, by: str) -> MemoryScope | None:
        return self.scope(scope_in(head, role, by)) if role.includes(Role.USER) else None

    # ------------------------------------------------------------ what was read

    async def _seen(self) -> dict[str, int]:
        stored = await self._sessions.fact(SEEN)
        try:
            found = json.loads(stored) if stored else {}
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    async def _mark(self, session: SessionId, last: Seq) -> None:
        seen = await self._seen()
        seen.pop(session, None)
        seen[session] = last
        kept = dict(list(seen.items())[-MAX_SEEN:])
        await self._sessions.remember(SEEN, json.dumps(kept).encode())
