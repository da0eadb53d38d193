"""Pairing rules: how an unknown user becomes allowed. Pure; time and randomness are arguments.

An unknown user who writes in a private chat gets a code, and the operator approves it. Only a slow, salted hash
of it is stored. Guessing is limited: codes expire after an hour, few are pending at a time, and wrong codes lock
approval for an hour. Users cannot block each other: in a full list a new request replaces the oldest one after a
while, and each user can ask only a few times a day.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum

from hermes.domain.access.role import Role
from hermes.domain.source import Place
from hermes.domain.values import dataclass, replace

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # without 0 and O, 1 and I
CODE_CHARS = 8
VALID_S = 3600.0
MAX_PENDING = 10  # per platform
KEPT_S = 600.0  # minimum time that a request stays in a full list
MAX_REQUESTS = 3  # per user and day
_DAY_S = 86_400.0
_MAX_PAST = 1000  # requests kept to count those of the last day
MAX_WRONG = 5
LOCKED_S = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Pending request of an unknown user. The hash is empty until the code is sent."""

    place: Place
    user: str
    name: str
    at: float
    salt: str = ""
    hash: str = ""

    @property
    def platform(self) -> str:
        return self.place.platform


@dataclass(frozen=True, slots=True, kw_only=True)
class Approved:
    platform: str
    user: str
    name: str
    at: float
    chat: str = ""  # private chat of the request; empty in old entries
    role: Role = Role.GUEST  # of old entries, too


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRequest:
    """A request of the last day, approved or not."""

    platform: str
    user: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PairingBook:
    """All stored pairing data."""

    pending: tuple[Request, ...] = ()
    approved: tuple[Approved, ...] = ()
    wrong: int = 0  # wrong codes since the last right one
    locked_until: float = 0.0
    past: tuple[PastRequest, ...] = ()


class PairingOutcome(StrEnum):
    NEW = "new"  # send a code
    KNOWN = "known"  # a code was sent and is still valid
    FULL = "full"  # too many pending requests
    TOO_OFTEN = "too_often"  # too many requests of this user today


# ---------------------------------------------------------------- codes


def make_code(choose: Callable[[str], str]) -> str:
    return "".join(choose(ALPHABET) for _ in range(CODE_CHARS))


def read_code(text: str) -> str:
    """Normalise a code as typed."""
    return "".join(char for char in text.upper() if char not in " -")


def hash_of(code: str, salt: str) -> str:
    """Hash a code. Slow on purpose: not for the event loop."""
    return hashlib.scrypt(code.encode(), salt=salt.encode(), n=1 << 14, r=8, p=1, dklen=32).hex()


# ---------------------------------------------------------------- changes of the book


def role_of(book: PairingBook, platform: str, user: str) -> Role | None:
    """Return the role of a paired user; None if the user is not paired."""
    return next((each.role for each in book.approved if (each.platform, each.user) == (platform, user)), None)


def with_role(book: PairingBook, platform: str, user: str, role: Role) -> PairingBook:
    """Change a user's role. Returns an equal book if the user is not paired."""
    return replace(
        book,
        approved=tuple(
            replace(each, role=role) if (each.platform, each.user) == (platform, user) else each
            for each in book.approved
        ),
    )


def current(book: PairingBook, now: float) -> PairingBook:
    """Drop expired requests."""
    pending = tuple(each for each in book.pending if 0 <= now - each.at < VALID_S)
    past = tuple(each for each in book.past if 0 <= now - each.at < _DAY_S)
    return replace(book, pending=pending, past=past)


def ask(book: PairingBook, request: Request) -> tuple[PairingBook, PairingOutcome]:
    book = current(book, request.at)
    same = [each for each in book.pending if each.platform == request.platform]
    if any(each.user == request.user for each in same):
        return book, PairingOutcome.KNOWN
    if sum((each.platform, each.user) == (request.platform, request.user) for each in book.past) >= MAX_REQUESTS:
        return book, PairingOutcome.TOO_OFTEN
    pending = book.pending
    if len(same) >= MAX_PENDING:
        oldest = min(same, key=lambda each: each.at)
        if request.at - oldest.at < KEPT_S:
            return book, PairingOutcome.FULL
        pending = tuple(each for each in pending if each is not oldest)
    past = PastRequest(platform=request.platform, user=request.user, at=request.at)
    return replace(book, pending=(*pending, request), past=(*book.past, past)[-_MAX_PAST:]), PairingOutcome.NEW


def issue(book: PairingBook, request: Request, salt: str, hashed: str) -> PairingBook:
    """Store the hash of a newly made code in its request."""
    issued = replace(request, salt=salt, hash=hashed)
    return replace(book, pending=tuple(issued if each is request else each for each in book.pending))


def approve(
    book: PairingBook,
    platform: str,
    code: str,
    now: float,
    hashing: Callable[[str, str], str] = hash_of,
    *,
    role: Role = Role.GUEST,
) -> tuple[PairingBook, Request | str]:
    """Approve the request with this code. Returns the new book, and the request or why none was approved."""
    if now < book.locked_until:
        return book, f"too many wrong codes: {_locked(platform, book.locked_until - now)}"
    book = current(book, now)
    typed = read_code(code)
    for request in book.pending:
        fits = request.platform == platform and request.hash
        if fits and hmac.compare_digest(request.hash, hashing(typed, request.salt)):
            approved = Approved(
                platform=platform, user=request.user, name=request.name, at=now, chat=request.place.chat, role=role
            )
            left = tuple(each for each in book.pending if each is not request)
            return replace(book, pending=left, approved=(*book.approved, approved), wrong=0), request
    wrong = book.wrong + 1
    if wrong >= MAX_WRONG:
        locked = replace(book, wrong=0, locked_until=now + LOCKED_S)
        return locked, f"wrong code, {wrong} times in a row: {_locked(platform, LOCKED_S)}"
    return replace(book, wrong=wrong), (
        f"no pending request on {platform} has this code, or the code has expired; "
        f"{'1 try is' if wrong == MAX_WRONG - 1 else f'{MAX_WRONG - wrong} tries are'} left"
    )


def revoke(book: PairingBook, platform: str, user: str) -> PairingBook:
    """Remove a user's pairing and pending requests. Returns an equal book if there were none."""
    return replace(
        book,
        pending=tuple(each for each in book.pending if (each.platform, each.user) != (platform, user)),
        approved=tuple(each for each in book.approved if (each.platform, each.user) != (platform, user)),
    )


def _locked(platform: str, seconds: float) -> str:
    return (
        f"approving is locked for {_minutes(seconds)}. To add the user without a code, add the user's id to "
        f"{platform}.allowed_users in the configuration and run `hermes restart`"
    )


def _minutes(seconds: float) -> str:
    minutes = max(1, round(seconds / 60))
    return "1 minute" if minutes == 1 else f"{minutes} minutes"


# ---------------------------------------------------------------- serialisation


def encode(book: PairingBook) -> bytes:
    return json.dumps(asdict(book), ensure_ascii=False).encode("utf-8", "replace")


def decode(raw: bytes | None) -> PairingBook:
    if raw is None:
        return PairingBook()
    import msgspec  # noqa: PLC0415 - 1 MB that a daemon without paired people does not need

    return msgspec.json.decode(raw, type=PairingBook)
