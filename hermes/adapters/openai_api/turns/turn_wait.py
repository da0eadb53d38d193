"""Shared steps of handlers that wait for a turn: accept it once, wait while the client does."""

from __future__ import annotations

import hashlib
from collections.abc import Coroutine
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
from hermes.domain.ids import SessionId, inbound_of
from hermes.domain.turn.submission import Receipt, Submission
from hermes.domain.values import replace


def only_once(submission: Submission, key: str | None, scope: str) -> Submission:
    """Add the inbound id of an Idempotency-Key. The fingerprint detects another request with the same key.

    `scope` is the session or the previous response of the request.
    """
    if key is None:
        return submission
    content = hashlib.sha256()
    for part in (scope.encode(), submission.options, *submission.messages):
        content.update(len(part).to_bytes(8, "big") + part)
    platform = submission.source.platform
    named = platform.startswith(PLATFORM_PREFIX)  # Idempotency-Keys of different API keys are independent
    inbound = inbound_of(f"{platform}/{key}" if named else key)
    return replace(submission, inbound=inbound, fingerprint=content.digest())


async def check_intake(service: Service, submission: Submission) -> None:
    """Refuse new requests while the intake is closed. A repeated one gets its answer, or waits for its turn."""
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
    """Return the work's response. If the client leaves or the server stops, the work is cancelled, but not the turn.

    `stop_if_left` stops the turn when its client leaves.
    """
    lost = connection_of(request).lost
    try:
        response = await until(work, lost, service.lifetime.over)
        if response is None and lost.done():
            raise ConnectionResetError("the client left")
    except ConnectionError:
        logger.info("api: client of turn {} of session {} disconnected", receipt.turn, receipt.session)
        if stop_if_left:
            await _stop(service, receipt)
        raise
    if response is not None:
        return response
    then = "send it again under the same Idempotency-Key" if is_keyed(request) else where_stored(receipt.session)
    message = f"The daemon is stopping. Turn {receipt.turn} is stored and continues after the next start"
    raise StoppingError(f"{message}; to get its answer then: {then}")


async def _stop(service: Service, receipt: Receipt) -> None:
    try:
        await service.sessions.stop_turn(receipt.session, "its client left", receipt.turn)
    except HermesError as error:
        logger.warning("api: could not stop turn {} of session {}: {}", receipt.turn, receipt.session, error)


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
    """Log how a turn ended. An ordinary answer is logged at DEBUG: the line would cost a tenth of the turn."""
    if request[RECEIPT].duplicate:  # the turn has ended before
        how = "was replayed for a repeated Idempotency-Key"
    elif isinstance(outcome, TurnAnswered):
        logger.debug("api: turn {} of session {} {}", outcome.turn, outcome.session, how)
        return
    caller = f" (api key {key.name})" if (key := request.get(KEY)) is not None else ""
    logger.info("api: turn {} of session {} {}{}", outcome.turn, outcome.session, how, caller)


def is_keyed(request: web.Request) -> bool:
    return parameter.IDEMPOTENCY_HEADER in request.headers


def where_stored(session: SessionId) -> str:
    return f"GET /api/sessions/{session}/messages"
