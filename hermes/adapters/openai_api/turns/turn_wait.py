"""What every handler does that waits for a turn on behalf of a client: accept it once, wait while it is wanted."""

from __future__ import annotations

import hashlib
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from aiohttp import web
from loguru import logger

from hermes.adapters.http import parameter, problem
from hermes.adapters.http.connection import connection_of
from hermes.adapters.http.key_scope import KEY
from hermes.adapters.http.listener import until
from hermes.adapters.http.problem import ProblemError
from hermes.adapters.http.service import RECEIPT, Service, remember_session
from hermes.domain.access.api_key import PLATFORM_PREFIX
from hermes.domain.errors import HermesError, StoppingError
from hermes.domain.events import CallAsked, TurnAnswered, TurnGaveUp, TurnOutcome
from hermes.domain.idempotency import inbound_of
from hermes.domain.submission import Receipt, Submission
from hermes.domain.types import SessionId


def only_once(submission: Submission, key: str | None, scope: str) -> Submission:
    """The same key is the same turn; the fingerprint tells a repeated request from another one under its key.

    `scope` is what the request says about where it belongs.
    """
    if key is None:
        return submission
    content = hashlib.sha256()
    for part in (scope.encode(), submission.options, *submission.messages):
        content.update(len(part).to_bytes(8, "big") + part)
    platform = submission.source.platform
    named = platform.startswith(PLATFORM_PREFIX)  # what two named keys call the same is not the same
    inbound = inbound_of(f"{platform}/{key}" if named else key)
    return replace(submission, inbound=inbound, fingerprint=content.digest())


async def check_intake(service: Service, submission: Submission) -> None:
    """A known key gets in when nothing else does: it has its answer, or a turn to wait for."""
    if not service.lifetime.intake_open and await service.sessions.accepted(submission) is None:
        service.lifetime.check_intake()


async def while_wanted(
    service: Service,
    request: web.Request,
    receipt: Receipt,
    work: Coroutine[Any, Any, web.StreamResponse],
    *,
    stop_if_left: bool = False,
) -> web.StreamResponse:
    """Return the work's response, unless the client leaves or the time is up: then the work ends, but not the turn.

    `stop_if_left`: the turn ends with its client.
    """
    lost = connection_of(request).lost
    try:
        response = await until(work, lost, service.lifetime.over)
        if response is None and lost.done():
            raise ConnectionResetError("the client left")
    except ConnectionError:
        logger.info("nobody waits for turn {} of session {} any more", receipt.turn, receipt.session)
        if stop_if_left:
            await _stop(service, receipt)
        raise
    if response is not None:
        return response
    then = "send it again under the same Idempotency-Key" if is_keyed(request) else where_stored(receipt.session)
    message = f"The daemon is stopping. Turn {receipt.turn} is stored and goes on after the next start"
    raise StoppingError(f"{message}; for its answer, then: {then}")


async def _stop(service: Service, receipt: Receipt) -> None:
    try:
        await service.sessions.stop_turn(receipt.session, "its client left", receipt.turn)
    except HermesError as error:
        logger.warning("turn {} of session {} was not stopped: {}", receipt.turn, receipt.session, error)


def settled(request: web.Request, outcome: TurnOutcome) -> TurnAnswered:
    remember_session(request, outcome.session)
    match outcome:
        case TurnAnswered():
            log_end(request, outcome, "was answered")
            return outcome
        case TurnGaveUp(failure=failure):
            log_end(request, outcome, f"failed: {failure.kind}")
            raise ProblemError(problem.of_failure(failure, keyed=is_keyed(request)))


def log_end(request: web.Request, outcome: TurnOutcome | CallAsked, how: str) -> None:
    if request[RECEIPT].duplicate:  # the turn did not end a second time
        how = "was replayed: its Idempotency-Key came again"
    whose = f" (api key {key.name})" if (key := request.get(KEY)) is not None else ""
    logger.info("turn {} of session {} {}{}", outcome.turn, outcome.session, how, whose)


def is_keyed(request: web.Request) -> bool:
    return parameter.IDEMPOTENCY_HEADER in request.headers


def where_stored(session: SessionId) -> str:
    return f"GET /api/sessions/{session}/messages"
