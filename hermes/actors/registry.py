"""Who is in memory, who is on the way out, who is between two lives, and the mail that waits for them.

Bookkeeping only: the directory decides. Mail for a session that is leaving or coming back is kept here, so that none
is lost. And a look at the disk can be overtaken: what it found of a session that has left memory since it began may
be out of date. Brought back from that, a session would refuse what it ought to do, as only a write shows it that it
is wrong.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast
from weakref import WeakSet

from hermes.actors.kernel.future import LoopFuture
from hermes.actors.kernel.mailbox import Inbox
from hermes.actors.kernel.ref import ActorDeadError, ActorRef
from hermes.actors.session_mail import Passivate, Post
from hermes.domain.ids import SessionId, SessionKey
from hermes.domain.session.state import Session

if TYPE_CHECKING:
    from hermes.actors.session import SessionActor


class ReadSnapshot:
    """Marker of a read of the store. Sessions that leave memory while it is held outdate what it found."""

    __slots__ = ("__weakref__", "departed")

    def __init__(self) -> None:
        self.departed: set[SessionId] = set()

    def is_outdated(self, head: Session | None) -> bool:
        return head is not None and head.id in self.departed


class _Entry:
    __slots__ = ("ref", "touched")

    def __init__(self, ref: ActorRef[SessionActor], touched: float) -> None:
        self.ref = ref
        self.touched = touched


class SessionRegistry:
    def __init__(self) -> None:
        self._live: OrderedDict[SessionId, _Entry] = OrderedDict()  # least recently used first
        self._leaving: dict[SessionId, _Entry] = {}
        self._away: dict[SessionId, list[Post]] = {}  # mail for those that are leaving, or between two lives
        self._released: dict[SessionId, list[LoopFuture]] = {}
        self._unborn: dict[SessionKey, SessionId] = {}  # started under a key; the store may not know of it yet
        self._unborn_keys: dict[SessionId, SessionKey] = {}  # the same, the other way round
        self._looks: WeakSet[ReadSnapshot] = WeakSet()

    def __contains__(self, session: SessionId | None) -> bool:
        """It is in memory, or will be: mail for it can be handed over."""
        return session in self._live or session in self._away

    def is_live(self, session: SessionId | None) -> bool:
        return session in self._live

    def is_away(self, session: SessionId) -> bool:
        return session in self._away

    def refs(self) -> list[ActorRef[SessionActor]]:
        return [entry.ref for entry in (*self._live.values(), *self._leaving.values())]

    def sessions(self) -> tuple[SessionId, ...]:
        return (*self._live, *self._leaving)

    def touched(self) -> Mapping[SessionId, float]:
        """When each was last used, the one for which that is longest ago first."""
        return {session: entry.touched for session, entry in self._live.items()}

    def mailbox(self, session: SessionId) -> int | None:
        """How much mail waits for it; None: it is not in memory."""
        entry = self._live.get(session)
        return None if entry is None else len(cast("Inbox", entry.ref.actor_inbox))

    def look(self) -> ReadSnapshot:
        """To be taken before the disk is read."""
        look = ReadSnapshot()
        self._looks.add(look)
        return look

    # ------------------------------------------------------------ in

    def enter(
        self, session: SessionId, ref: ActorRef[SessionActor], now: float, key: SessionKey | None = None
    ) -> None:
        """`key`: what means this session, and is not on disk yet."""
        self._live[session] = _Entry(ref, now)
        if key is not None:
            self._unborn[key] = session
            self._unborn_keys[session] = key

    def unborn(self, key: SessionKey | None) -> SessionId | None:
        return None if key is None else self._unborn.get(key)

    def is_born(self, session: SessionId) -> None:
        """It is on disk, or never will be: what its key means is for the store to say."""
        key = self._unborn_keys.pop(session, None)
        if key is not None and self._unborn.get(key) == session:
            del self._unborn[key]

    def hand_over(self, session: SessionId, post: Post, now: float) -> None:
        entry = self._live.get(session)
        if entry is None:
            self._away[session].append(post)
            return
        entry.touched = now
        self._live.move_to_end(session)
        try:
            entry.ref.tell(post)
        except ActorDeadError:  # its death notice is on the way; the mail waits for what becomes of it
            self._away.setdefault(session, []).append(post)

    def tell_live(self, session: SessionId, message: object) -> bool:
        """Send a message to a session in memory, which does not count as use. Return whether there is one."""
        entry = self._live.get(session)
        if entry is None or not entry.ref.is_alive():
            return False
        entry.ref.tell(message)
        return True

    # ------------------------------------------------------------ out

    def dismiss(self, session: SessionId, mail: Iterable[Post] = ()) -> None:
        """Have it leave memory, if it is there and has no work; this mail, and what comes meanwhile, waits."""
        entry = self._live.pop(session, None)
        if entry is not None:
            self._leaving[session] = entry
            self._away[session] = list(mail)
            entry.ref.tell(Passivate())  # not a stop: what it is writing gets its answer first

    def stays(self, session: SessionId, now: float) -> None:
        """It was to leave, and has work."""
        entry = self._leaving.pop(session, None)
        if entry is None:
            return
        self._live[session] = entry
        entry.touched = now
        for post in self._away.pop(session, ()):
            self.hand_over(session, post, now)

    def release(self, session: SessionId, done: LoopFuture) -> None:
        """Have it leave memory, whatever it does."""
        entry = self._live.get(session) or self._leaving.get(session)
        if entry is None:
            done.settle(None)
            return
        self._released.setdefault(session, []).append(done)
        entry.ref.stop(block=False)

    def has_left(self, session: SessionId) -> list[Post]:
        """It has ended. Returns the mail that waited for that."""
        self._live.pop(session, None)
        self._leaving.pop(session, None)
        self.is_born(session)
        for look in self._looks:
            look.departed.add(session)
        for future in self._released.pop(session, ()):
            future.settle(None)
        return self._away.pop(session, [])

    def comes_back(self, session: SessionId, mail: list[Post]) -> None:
        """It is between two lives: this mail, and what comes meanwhile, waits for the next one."""
        self._away[session] = mail

    def mail_for(self, session: SessionId) -> list[Post]:
        """What waited for it, to be sent on its way again."""
        return self._away.pop(session, [])
