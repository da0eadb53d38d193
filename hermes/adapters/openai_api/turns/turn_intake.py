"""Intake of turns, the same for every route: finds the session, recognises repeats, and submits.

A request that names no session is recognised by its history: the messages up to the model's last answer lead to the
turn that gave this answer (`hermes/domain/history/message_chain.py`). It continues that session, or a branch of it if
another turn has followed. A request without a known history opens a session.
"""

from __future__ import annotations

import asyncio
import json
import weakref
from collections.abc import Mapping
from typing import Any

from aiohttp import web
from loguru import logger

from hermes.adapters.http.parameter import header, idempotency_key
from hermes.adapters.http.problem import ProblemError
from hermes.adapters.http.service import Service
from hermes.adapters.openai_api.command_once import run_once
from hermes.adapters.openai_api.turns.conversation_input import ConversationInput
from hermes.adapters.openai_api.turns.placement import is_gone, no_previous, place_after
from hermes.adapters.openai_api.turns.session_choice import SessionChoice
from hermes.adapters.openai_api.turns.turn_view import end_of
from hermes.adapters.openai_api.turns.turn_wait import check_intake, only_once
from hermes.domain.errors import AlreadySeenError, BadInputError, UnknownSessionError
from hermes.domain.history.message_chain import Chain, answered, begin, key_of, request_key
from hermes.domain.ids import InboundKey, SessionId, TurnId, TurnToken
from hermes.domain.records import TurnFailed
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Receipt, Seen, Submission
from hermes.domain.turn.turn_failure import FailureKind
from hermes.domain.values import dataclass, replace
from hermes.services.commands.registry import Parsed
from hermes.services.commands.reply import CommandReply

RETRY_HEADER = "x-stainless-retry-count"  # how often the client library has repeated the request
REPEATED_WITHIN_S = 60.0  # after the end of the first try
_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True)
_TRY_AGAIN = (FailureKind.RATE_LIMIT, FailureKind.OVERLOADED)  # answered with 429 and 503

_MOVED_ON = ("call_not_waiting", "turn_taken_back")  # the client's history is not the session's any more
_ELSEWHERE = ("new", "branch")  # commands after which the history continues no known turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    """A request on its way in."""

    submission: Submission
    choice: SessionChoice
    before: Chain  # of the client's history without the new messages
    repeat: InboundKey  # of the whole request
    retried: bool  # the client library repeats it
    repeats_results: bool = False  # a call has more than one result

    def ignored(self, receipt: Receipt) -> str:
        """Return a notice if a part of the request was not used."""
        repeated = "A call had more than one result: the last one counts." if self.repeats_results else ""
        return " ".join(filter(None, (self._ignored_history(receipt), repeated)))

    def _ignored_history(self, receipt: Receipt) -> str:
        count = len(self.submission.opening)
        named = self.choice.session is not None or self.choice.key is not None
        if not count or not named or receipt.opened or receipt.duplicate:
            return ""
        many = "1 earlier message" if count == 1 else f"{count} earlier messages"
        what = f"{many} of this request {'was' if count == 1 else 'were'}"
        return f"{what} ignored: the stored session is the history."


class TurnIntake:
    def __init__(self, service: Service) -> None:
        self._service = service
        # Two requests that continue the same turn must not both find it to be the last one.
        self._placing: weakref.WeakValueDictionary[SessionId, asyncio.Lock] = weakref.WeakValueDictionary()

    def prepare(
        self,
        request: web.Request,
        body: Mapping[str, Any],
        given: ConversationInput,
        *,
        options: bytes,
        source: Source,
        choice: SessionChoice,
    ) -> Intake:
        """Return the request as a submission with a turn id, so that the caller can subscribe to its events."""
        scope = f"{source.platform}\0{source.user}"
        before, chain = given.chains(scope)
        if choice.session is not None or choice.key is not None:
            given = given.last_only()
        content = _CANONICAL.encode([choice.scope, body]).encode(errors="replace")
        repeat = request_key(begin(scope), content)
        submission = Submission(
            turn=self._service.new_turn_id(),
            messages=given.encoded_new,
            opening=given.encoded_history,
            source=source,
            session=choice.session,
            key=choice.key,
            options=options,
            instructions=_instructions(given, choice),
            chain=chain,
            locates=(repeat,),
            once=True,
            results=given.results,
        )
        return Intake(
            submission=only_once(submission, idempotency_key(request), choice.scope),
            choice=choice,
            before=before,
            repeat=repeat,
            retried=(header(request, RETRY_HEADER) or "0") != "0",
            repeats_results=given.repeats_results,
        )

    async def submit(self, intake: Intake) -> Receipt:
        await check_intake(self._service, intake.submission)
        if intake.retried and (repeated := await self._repeated(intake)) is not None:
            return repeated
        try:
            return await self._placed(intake)
        except AlreadySeenError as error:
            if error.seen.key != intake.repeat:
                raise
        # An equal request was stored before. Most are new ones, so the store is asked only when it says so.
        if (repeated := await self._repeated(intake)) is not None:
            return repeated
        return await self._placed(replace(intake, submission=replace(intake.submission, once=False)))

    async def _placed(self, intake: Intake) -> Receipt:
        """Submit to the session of the request."""
        submission = intake.submission
        if (before := intake.choice.previous) is not None:
            if await is_gone(self._service.sessions, before):
                raise no_previous()
            return await self._after(before, submission)
        if intake.choice.is_open and submission.opening:
            return await self._continued(intake)
        return await self._service.sessions.submit(submission)

    async def command(self, intake: Intake, command: Parsed) -> tuple[Submission, CommandReply]:
        """Run a command in the session of the request. A history that goes on after its reply is recognised."""
        submission = await self._located(intake)
        found = await self._find(key_of(intake.before))
        reply = await run_once(self._service, command, submission)
        session = reply.session or submission.session
        turn = None if session is None else await self._turn_before(session, command, reply, found)
        if session is not None and turn is not None:
            key = key_of(answered(submission.chain, reply.text))
            seen = Seen(key=key, session=session, turn=turn, fingerprint=b"", at=self._service.clock())
            await self._service.sessions.locate(seen)
        return submission, reply

    async def _turn_before(
        self, session: SessionId, command: Parsed, reply: CommandReply, found: Seen | None
    ) -> TurnId | None:
        """Return the turn that a message after the command's reply continues."""
        if reply.receipt is not None:
            return reply.receipt.turn
        if found is None or command.command.name in _ELSEWHERE:
            return None
        if command.command.name != "undo":
            return found.turn
        last = await self._service.sessions.messages(session, None, 1)
        return last[-1].turn or None if last else None

    async def _located(self, intake: Intake) -> Submission:
        """Return the submission with the session that it would go to, for a command that acts on it."""
        submission, choice, sessions = intake.submission, intake.choice, self._service.sessions
        if choice.key is not None:
            return replace(submission, session=await sessions.bound(choice.key), key=None)
        before = choice.previous
        if before is None and choice.is_open and submission.opening:
            found = await self._find(key_of(intake.before))
            before = None if found is None else TurnToken(session=found.session, turn=found.turn)
        return submission if before is None else replace(submission, session=before.session)

    # ------------------------------------------------------------ history

    async def _continued(self, intake: Intake) -> Receipt:
        """Continue the session that the request's history belongs to; without one, open a session."""
        submission, sessions = intake.submission, self._service.sessions
        found = await self._find(key_of(intake.before))
        if found is not None:
            before = TurnToken(session=found.session, turn=found.turn)
            try:
                return await self._after(before, replace(submission, replies=True))
            except (ProblemError, UnknownSessionError) as error:  # it was erased
                logger.info("api: history of session {} is not stored any more: {}", found.session, error)
            except BadInputError as error:
                if error.code not in _MOVED_ON:
                    raise
                logger.info("api: session {} has moved on ({}); a new one is opened", found.session, error.code)
        return await sessions.submit(submission)

    async def _after(self, before: TurnToken, submission: Submission) -> Receipt:
        """Submit after that turn: in its session if it is the last one there, else in a branch."""
        sessions = self._service.sessions
        lock = self._placing.setdefault(before.session, asyncio.Lock())
        async with lock:
            accepted = await sessions.accepted(submission)
            if accepted is not None:
                return accepted
            session = await place_after(sessions, before)
            return await sessions.submit(replace(submission, session=session))

    async def _find(self, key: InboundKey) -> Seen | None:
        try:
            return await self._service.sessions.located(key)
        except UnknownSessionError:
            return None

    # ------------------------------------------------------------ repeats

    async def _repeated(self, intake: Intake) -> Receipt | None:
        """Return the receipt of the same request, if this is a repeat of it; None if it is a new message.

        A failed turn is tried again, without a second copy of its message.
        """
        seen = await self._find(intake.repeat) if intake.submission.inbound is None else None
        if seen is None:
            return None
        sessions = self._service.sessions
        end = end_of(await sessions.records(seen.session, seen.turn))
        if end is not None and self._service.clock() - end.at > REPEATED_WITHIN_S:
            return None
        if not isinstance(end, TurnFailed):
            duplicate = Receipt(session=seen.session, turn=seen.turn, duplicate=True)
            return duplicate if intake.retried else None
        if end.failure.kind not in _TRY_AGAIN:
            return None
        again = replace(
            intake.submission,
            session=seen.session,
            key=None,
            messages=(),
            opening=(),
            results=(),
            retries=True,
            once=False,
        )
        try:
            return await sessions.submit(again)
        except BadInputError as error:
            logger.info("api: turn {} of session {} is not tried again: {}", seen.turn, seen.session, error)
            return None


def _instructions(given: ConversationInput, choice: SessionChoice) -> EncodedMessage | None:
    """Return the instructions of the session from now on. A client that names a session may leave them out."""
    keeps = choice.session is not None or choice.key is not None
    return None if keeps and not given.instructions else given.instructions
