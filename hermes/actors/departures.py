"""Who has left memory while the disk was looked at: what such a look found of them may be out of date.

A session that is brought back from an outdated row would refuse by it what it ought to do, as only a write shows it
that it is wrong. A look counts for as long as somebody holds it.
"""

from __future__ import annotations

from weakref import WeakSet

from hermes.types import Session, SessionId


class Look:
    __slots__ = ("__weakref__", "departed")

    def __init__(self) -> None:
        self.departed: set[SessionId] = set()

    def is_outdated(self, head: Session | None) -> bool:
        return head is not None and head.id in self.departed


class Departures:
    __slots__ = ("_looks",)

    def __init__(self) -> None:
        self._looks: WeakSet[Look] = WeakSet()

    def look(self) -> Look:
        """To be taken before the disk is read."""
        look = Look()
        self._looks.add(look)
        return look

    def note(self, session: SessionId) -> None:
        for look in self._looks:
            look.departed.add(session)
