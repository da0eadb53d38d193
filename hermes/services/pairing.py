"""The desk that pairs strangers: keeps the book on disk, and tells people how they stand.

What it says to a stranger is an obligation. Its text has a gap where the code belongs: the code is made when the
message is about to be sent, only its hash is stored, and nothing on disk or in the log ever holds it.
"""

from __future__ import annotations

import asyncio
import secrets
from functools import partial

from loguru import logger

from hermes.domain.access.role import Role
from hermes.domain.errors import BadInputError, DeliveryError, HermesError
from hermes.domain.types import OutboxKind, OutboxMessage, Place
from hermes.ports.chat import Inbound, Outbox
from hermes.ports.given import Clock
from hermes.ports.sessions import Sessions
from hermes.services import pairing_code
from hermes.services.pairing_code import Approved, PairingBook, PairingOutcome, Request

FACT = "chat.pairing"
GAP = "\N{BULLET}" * pairing_code.CODE_CHARS
_LATER_EVERY_S = 3600.0
_LATER = "You are not on my list, and several others are asking to be let in. Please try again later."
_TOO_LATE = "You are not on my list, and this took too long. Write to me again, and I give you a code."
_LET_IN = "You may talk to me now. I have not read what you wrote before: say it again. /help says what I can do."


class PairingService:
    def __init__(self, *, sessions: Sessions, outbox: Outbox, clock: Clock) -> None:
        self._sessions = sessions
        self._outbox = outbox
        self._clock = clock
        self._book: PairingBook | None = None  # as it is on disk
        self._writing = asyncio.Lock()

    async def book(self) -> PairingBook:
        return pairing_code.current(await self._read(), self._clock())

    async def role(self, platform: str, user: str) -> Role | None:
        """None: nobody let them in."""
        return pairing_code.role_of(await self._read(), platform, user)

    # ------------------------------------------------------------ strangers

    async def ask(self, inbound: Inbound) -> None:
        """A stranger wrote in a private chat: they are told how to be let in, once."""
        place, now = inbound.place, self._clock()
        request = Request(place=place, user=inbound.user, name=inbound.user_name[:100], at=now)
        async with self._writing:
            book, asked = pairing_code.ask(await self._read(), request)
            if asked is PairingOutcome.NEW:
                await self._write(book)
        if asked is PairingOutcome.TOO_OFTEN:
            logger.debug("{}: user {} asks too often to be let in", place.platform, inbound.user)
            return
        if asked is PairingOutcome.FULL:
            name = f"pairing:later:{place.platform}:{inbound.user}:{now // _LATER_EVERY_S:.0f}"
            await self._say(name, place, _LATER)
            return
        if asked is PairingOutcome.NEW:
            logger.info("{}: user {} asks to be let in", place.platform, inbound.user)
        # Also for one who has asked before: a crash may have come between the request and what is said.
        request = next(each for each in book.pending if _id(each) == _id(request))
        await self._say(_outgoing(request), request.place, _invitation(request))

    async def fill(self, outgoing: OutboxMessage, text: str) -> str:
        """The text with its code. Raises DeliveryError."""
        code, salt = pairing_code.make_code(secrets.choice), secrets.token_hex(16)
        hashed = await asyncio.to_thread(pairing_code.hash_of, code, salt)
        try:
            async with self._writing:
                book = pairing_code.current(await self._read(), self._clock())
                request = next((each for each in book.pending if _outgoing(each) == outgoing.id), None)
                if request is None:
                    return _TOO_LATE
                await self._write(pairing_code.issue(book, request, salt, hashed))
        except HermesError as error:
            raise DeliveryError(f"the code could not be stored: {error}") from error
        return text.replace(GAP, code)

    # ------------------------------------------------------------ whoever runs Hermes

    async def approve(self, platform: str, code: str, role: Role = Role.GUEST) -> Approved:
        async with self._writing:
            book = await self._read()
            approve = partial(pairing_code.approve, book, platform, code, self._clock(), role=role)
            after, outcome = await asyncio.to_thread(approve)
            await self._write(after)
        if isinstance(outcome, str):
            logger.warning("pairing: {}", outcome)
            raise BadInputError(outcome, code="wrong_code")
        logger.info("{}: user {} was let in", platform, outcome.user)
        name = f"pairing:approved:{platform}:{outcome.user}:{outcome.at:.0f}"
        await self._say(name, outcome.place, _LET_IN)
        return after.approved[-1]

    async def set_role(self, platform: str, user: str, role: Role) -> Approved:
        async with self._writing:
            book = await self._read()
            after = pairing_code.with_role(book, platform, user, role)
            found = next((each for each in after.approved if (each.platform, each.user) == (platform, user)), None)
            if found is None:
                raise BadInputError(_not_paired(platform, user), code="not_paired")
            await self._write(after)
        logger.info("{}: user {} is a {} from now on", platform, user, role)
        return found

    async def revoke(self, platform: str, user: str) -> str:
        """The chat that this person had with the bot alone."""
        async with self._writing:
            book = await self._read()
            after = pairing_code.revoke(book, platform, user)
            if after == book:
                raise BadInputError(_not_paired(platform, user), code="not_paired")
            await self._write(after)
        logger.info("{}: user {} is not allowed any more", platform, user)
        chats = (each.chat for each in book.approved if (each.platform, each.user) == (platform, user))
        return next(chats, "") or user  # on Telegram it has the person's id

    # ------------------------------------------------------------ the disk

    async def _read(self) -> PairingBook:
        if self._book is None:
            self._book = pairing_code.decode(await self._sessions.fact(FACT))
        return self._book

    async def _write(self, book: PairingBook) -> None:
        if book != self._book:
            await self._sessions.remember(FACT, pairing_code.encode(book))
            self._book = book

    async def _say(self, name: str, place: Place, text: str) -> None:
        await self._outbox.enqueue(
            OutboxMessage(id=name, kind=OutboxKind.NOTICE, place=place, text=text, at=self._clock())
        )


def _not_paired(platform: str, user: str) -> str:
    return f"nobody with the id {user} was let in on {platform} by pairing"


def _id(request: Request) -> tuple[str, str]:
    return request.platform, request.user


def _outgoing(request: Request) -> str:
    return f"pairing:code:{request.platform}:{request.user}:{request.at:.3f}"


def _invitation(request: Request) -> str:
    return (
        "You are not on the list of those who may talk to me. "
        "Whoever runs this Hermes can let you in with this, within an hour:\n\n"
        f"hermes pairing approve {request.platform} {GAP}\n\n"
        f"Your code is {GAP}, and your id here is {request.user}."
    )
