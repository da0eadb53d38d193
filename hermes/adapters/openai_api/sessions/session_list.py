"""Filtered list of sessions, last active first.

The cursor is the place of the last session that was read: its time of activity and its id. A session that becomes
active moves to the front, and so appears on no later page.
"""

from __future__ import annotations

import base64
import binascii
import json

from hermes.domain.errors import BadInputError
from hermes.domain.ids import SessionId
from hermes.domain.read.reader import Activity
from hermes.domain.session.state import Phase, Session
from hermes.domain.values import dataclass
from hermes.ports.sessions import Sessions

_READ = 200  # sessions per read
_MAX_READ = 5_000  # per page: the cursor continues after them
MAX_COUNTED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    platform: str = ""
    phase: Phase | None = None
    title: str = ""  # part of it, in any case
    person: str = ""
    since: float | None = None  # last activity
    until: float | None = None
    children: bool = False  # child sessions too

    def admits(self, session: Session) -> bool:
        return (
            (self.children or session.assignment is None)
            and self.platform in ("", session.platform)
            and self.phase in (None, session.phase)
            and self.title.casefold() in session.preferences.title.casefold()
            and self.person in ("", session.owner)
            and (self.since is None or session.active_at >= self.since)
            and (self.until is None or session.active_at < self.until)
        )

    def is_over(self, session: Session) -> bool:
        """Return whether this session and all after it are too old."""
        return self.since is not None and session.active_at < self.since

    @property
    def admits_all(self) -> bool:
        return self == SessionFilter()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSlice:
    sessions: list[Session]
    after: Activity | None  # where the next page begins; None: there is none


async def read_page(
    sessions: Sessions, wanted: SessionFilter, *, after: SessionId | Activity | None, limit: int
) -> SessionSlice:
    found: list[Session] = []
    for _ in range(_MAX_READ // _READ):
        size = min(_READ, limit + 1) if wanted.admits_all else _READ
        heads = await sessions.recent(size, after)
        for head in heads:
            if wanted.is_over(head):
                return SessionSlice(sessions=found, after=None)
            if wanted.admits(head):
                if len(found) == limit:
                    return SessionSlice(sessions=found, after=place_of(found[-1]))
                found.append(head)
        if len(heads) < size:
            return SessionSlice(sessions=found, after=None)
        after = place_of(heads[-1])
    return SessionSlice(sessions=found, after=None if isinstance(after, str) else after)


async def count(sessions: Sessions, wanted: SessionFilter) -> int:
    """Return how many sessions match, at most MAX_COUNTED."""
    counted, after = 0, None
    while counted < MAX_COUNTED:
        page = await read_page(sessions, wanted, after=after, limit=_READ)
        counted += len(page.sessions)
        if (after := page.after) is None:
            break
    return min(counted, MAX_COUNTED)


def place_of(session: Session) -> Activity:
    return session.active_at, session.id


def cursor_of(place: Activity) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def read_cursor(text: str) -> Activity:
    try:
        active_at, session = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        place = float(active_at), SessionId(str(session))
    except (binascii.Error, ValueError, TypeError):
        place = -1.0, SessionId("")
    if not 0 <= place[0] < 2**40 or not place[1] or cursor_of(place) != text:
        message = "cursor must be the next_cursor of a page."
        raise BadInputError(message, param="cursor", code="unprocessable")
    return place
