"""Pairing service: stores the pairing book and sends codes and results to people.

The stored message has a placeholder for the code. The code is made when the message is about to be sent, and only its
hash is stored: neither the disk nor the log ever holds the code.
"""

from __future__ import annotations

import asyncio
import secrets
from functools import partial

from loguru import logger

from hermes.domain.access.role import Role
from hermes.domain.errors import BadInputError, DeliveryError, HermesError
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.source import Place
from hermes.ports.chat import Inbound, Outbox
from hermes.ports.given import Clock
from hermes.ports.sessions import Sessions
from hermes.services import pairing_code
from hermes.services.pairing_code import Approved, PairingBook, PairingOutcome, Request

FACT = "chat.pairing"
GAP = "\N{BULLET}" * pairing_code.CODE_CHARS
_LIST_FULL_NOTICE_EVERY_S = 3600.0
_LIST_FULL = "You are not on the list of allowed users, and too many others are waiting. Please try again later."
_EXPIRED = "You are not on the list of allowed users, and this code has expired. Write again to get a new code."
_PAIRED = "You can talk to me now. I have not read your earlier messages: please send them again. See /help."


class PairingService:
    def __init__(self, *, sessions: Sessions, outbox: Outbox, clock: Clock) -> None:
        self._sessions = sessions
        self._outbox = outbox
        self._clock = clock
        self._book: PairingBook | None = None  # as stored
        self._writing = asyncio.Lock()

    async def book(self) -> PairingBook:
        return pairing_code.current(await self._read(), self._clock())

    async def role(self, platform: str, user: str) -> Role | None:
        """Return the role of a paired user; None if the user is not paired."""
        return pairing_code.role_of(await self._read(), platform, user)

    # ------------------------------------------------------------ requests of unknown users

    async def ask(self, inbound: Inbound) -> None:
        """Record the request of an unknown user in a private chat and send a code, once."""
        place, now = inbound.place, self._clock()
        request = Request(place=place, user=inbound.user, name=inbound.user_name[:100], at=now)
        async with self._writing:
            book, outcome = pairing_code.ask(await self._read(), request)
            if outcome is PairingOutcome.NEW:
                await self._write(book)
        if outcome is PairingOutcome.TOO_OFTEN:
            logger.debug("{}: pairing request of user {} ignored: too many today", place.platform, inbound.user)
            return
        if outcome is PairingOutcome.FULL:
            name = f"pairing:later:{place.platform}:{inbound.user}:{now // _LIST_FULL_NOTICE_EVERY_S:.0f}"
            await self._enqueue(name, place, _LIST_FULL)
            return
        if outcome is PairingOutcome.NEW:
            logger.info("{}: pairing requested by user {}", place.platform, inbound.user)
        # Also for a repeated request: a crash may have come between the request and its message.
        request = next(each for each in book.pending if _user_of(each) == _user_of(request))
        await self._enqueue(_message_id(request), request.place, _invitation(request))

    async def fill(self, outgoing: OutboxMessage, text: str) -> str:
        """Put a new code into the text. Raises DeliveryError."""
        code, salt = pairing_code.make_code(secrets.choice), secrets.token_hex(16)
        hashed = await asyncio.to_thread(pairing_code.hash_of, code, salt)
        try:
            async with self._writing:
                book = pairing_code.current(await self._read(), self._clock())
                request = next((each for each in book.pending if _message_id(each) == outgoing.id), None)
                if request is None:
                    return _EXPIRED
                await self._write(pairing_code.issue(book, request, salt, hashed))
        except HermesError as error:
            raise DeliveryError(f"could not store the pairing code: {error}") from error
        return text.replace(GAP, code)

    # ------------------------------------------------------------ operator

    async def approve(self, platform: str, code: str, role: Role = Role.GUEST) -> Approved:
        async with self._writing:
            book = await self._read()
            approve = partial(pairing_code.approve, book, platform, code, self._clock(), role=role)
            after, outcome = await asyncio.to_thread(approve)
            await self._write(after)
        if isinstance(outcome, str):
            logger.warning("pairing: {}", outcome)
            raise BadInputError(outcome, code="wrong_code")
        logger.info("{}: paired user {}", platform, outcome.user)
        name = f"pairing:approved:{platform}:{outcome.user}:{outcome.at:.0f}"
        await self._enqueue(name, outcome.place, _PAIRED)
        return after.approved[-1]

    async def set_role(self, platform: str, user: str, role: Role) -> Approved:
        async with self._writing:
            book = await self._read()
            after = pairing_code.with_role(book, platform, user, role)
            found = next((each for each in after.approved if (each.platform, each.user) == (platform, user)), None)
            if found is None:
                raise BadInputError(_not_paired(platform, user), code="not_paired")
            await self._write(after)
        logger.info("{}: user {} has role {} now", platform, user, role)
        return found

    async def revoke(self, platform: str, user: str) -> str:
        """Withdraw the pairing of a user. Returns the id of the user's private chat."""
        async with self._writing:
            book = await self._read()
            after = pairing_code.revoke(book, platform, user)
            if after == book:
                raise BadInputError(_not_paired(platform, user), code="not_paired")
            await self._write(after)
        logger.info("{}: pairing of user {} revoked", platform, user)
        chats = (each.chat for each in book.approved if (each.platform, each.user) == (platform, user))
        return next(chats, "") or user  # on Telegram the private chat has the user's id

    # ------------------------------------------------------------ storage

    async def _read(self) -> PairingBook:
        if self._book is None:
            self._book = pairing_code.decode(await self._sessions.fact(FACT))
        return self._book

    async def _write(self, book: PairingBook) -> None:
        if book != self._book:
            await self._sessions.remember(FACT, pairing_code.encode(book))
            self._book = book

    async def _enqueue(self, name: str, place: Place, text: str) -> None:
        await self._outbox.enqueue(
            OutboxMessage(id=name, kind=OutboxKind.NOTICE, place=place, text=text, at=self._clock())
        )


def _not_paired(platform: str, user: str) -> str:
    return f"user {user} is not paired on {platform}"


def _user_of(request: Request) -> tuple[str, str]:
    return request.platform, request.user


def _message_id(request: Request) -> str:
    return f"pairing:code:{request.platform}:{request.user}:{request.at:.3f}"


def _invitation(request: Request) -> str:
    return (
        "You are not on the list of allowed users. "
        "The operator of this Hermes can add you within an hour with this command:\n\n"
        f"hermes pairing approve {request.platform} {GAP}\n\n"
        f"Your code is {GAP}. Your user id is {request.user}."
    )
