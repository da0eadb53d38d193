"""Registry of session actors: live, leaving memory or restarting, and the mail that waits for them.

It only keeps books: the directory decides. It holds the mail of a session that is leaving or restarting, so that none
is lost. Disk reads can return stale data: a session may be written and leave memory after a read began. An actor
made from such a read would work on old state until its first write fails.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, cast
from weakref import WeakSet

from hermes.actors.kernel.future import LoopFuture
from hermes.actors.kernel.mailbox import Inbox
from hermes.actors.kernel.ref import ActorDeadError, ActorRef
from hermes.actors.session.session_mail import Passivate, Post
from hermes.domain.ids import SessionId, SessionKey
from hermes.domain.session.state import Session

if TYPE_CHECKING:
    from hermes.actors.session.session import SessionActor


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
        self._away: dict[SessionId, list[Post]] = {}  # mail of sessions that are leaving or restarting
        self._released: dict[SessionId, list[LoopFuture]] = {}
        self._unborn: dict[SessionKey, SessionId] = {}  # started under a key; the store may not know of it yet
        self._unborn_keys: dict[SessionId, SessionKey] = {}  # the same, the other way round
        self._looks: WeakSet[ReadSnapshot] = WeakSet()

    def __contains__(self, session: SessionId | None) -> bool:
        """Return whether mail can be handed over: the session is in memory, or will be."""
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
        """Return when each live session was last used, least recently used first."""
        return {session: entry.touched for session, entry in self._live.items()}

    def mailbox(self, session: SessionId) -> int | None:
        """Return the depth of the session's mailbox. None: the session is not in memory."""
        entry = self._live.get(session)
        return None if entry is None else len(cast("Inbox", entry.ref.actor_inbox))

    def look(self) -> ReadSnapshot:
        """Return a marker. Call this before the read begins."""
        look = ReadSnapshot()
        self._looks.add(look)
        return look

    # ------------------------------------------------------------ in

    def enter(
        self, session: SessionId, ref: ActorRef[SessionActor], now: float, key: SessionKey | None = None
    ) -> None:
        """Add a live session. `key`: its session key, if that is not on disk yet."""
        self._live[session] = _Entry(ref, now)
        if key is not None:
            self._unborn[key] = session
            self._unborn_keys[session] = key

    def unborn(self, key: SessionKey | None) -> SessionId | None:
        return None if key is None else self._unborn.get(key)

    def is_born(self, session: SessionId) -> None:
        """Forget the key of a new session: the store knows it now, or never will."""
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
        except ActorDeadError:  # its end is not handled yet; the mail waits for that
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
        """Ask a live session to leave memory if it has no work. This mail and later mail waits."""
        entry = self._live.pop(session, None)
        if entry is not None:
            self._leaving[session] = entry
            self._away[session] = list(mail)
            entry.ref.tell(Passivate())  # not a stop: what it is writing gets its answer first

    def stays(self, session: SessionId, now: float) -> None:
        """Keep a session that was asked to leave and has work."""
        entry = self._leaving.pop(session, None)
        if entry is None:
            return
        self._live[session] = entry
        entry.touched = now
        for post in self._away.pop(session, ()):
            self.hand_over(session, post, now)

    def release(self, session: SessionId, done: LoopFuture) -> None:
        """Stop the session's actor, also if it has work. `done` settles when it has stopped."""
        entry = self._live.get(session) or self._leaving.get(session)
        if entry is None:
            done.settle(None)
            return
        self._released.setdefault(session, []).append(done)
        entry.ref.stop(block=False)

    def has_left(self, session: SessionId) -> list[Post]:
        """Remove a session whose actor has stopped. Return the mail that waited."""
        self._live.pop(session, None)
        self._leaving.pop(session, None)
        self.is_born(session)
        for look in self._looks:
            look.departed.add(session)
        for future in self._released.pop(session, ()):
            future.settle(None)
        return self._away.pop(session, [])

    def comes_back(self, session: SessionId, mail: list[Post]) -> None:
        """Keep this mail, and later mail, until the session has restarted."""
        self._away[session] = mail

    def mail_for(self, session: SessionId) -> list[Post]:
        """Remove and return the mail that waited, to be routed again."""
        return self._away.pop(session, [])
