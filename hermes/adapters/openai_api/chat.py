"""POST /v1/chat/completions: one message in, one durable turn, one answer, whole or streamed.

Rules: the first byte of an answer goes out after the message is durable; the answer is what the journal holds, not
what happened to be streamed; a client that leaves does not end its turn unless it asked for that beforehand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Coroutine
from contextlib import closing
from dataclasses import replace
from typing import Any

from aiohttp import web
from loguru import logger

from hermes.adapters.openai_api import parameter, problem
from hermes.adapters.openai_api.chat_request import ChatRequest, parse_chat_request
from hermes.adapters.openai_api.completion import Completion
from hermes.adapters.openai_api.connection import connection_of
from hermes.adapters.openai_api.event_stream import EventStream, open_stream
from hermes.adapters.openai_api.listener import until
from hermes.adapters.openai_api.model_api import check_model
from hermes.adapters.openai_api.problem import Problem, ProblemError
from hermes.adapters.openai_api.service import RECEIPT, Service, json_response, remember_session
from hermes.adapters.openai_api.turn_watch import TurnWatch
from hermes.errors import HermesError, StoppingError
from hermes.events import TurnAnswered, TurnGaveUp, TurnOutcome
from hermes.ports import Receipt, Submission
from hermes.types import InboundKey, SessionId, Source


class Chat:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/chat/completions", self.completions)]

    async def completions(self, request: web.Request) -> web.StreamResponse:
        stop_if_left = parameter.flag(request, parameter.CANCEL_HEADER)
        chat, submission = await self._read(request)
        service = self._service
        service.lifetime.check_intake()
        with closing(service.hub.subscribe(turn=submission.turn)) as feed:
            receipt = _noting(await service.sessions.submit(submission), chat, submission)
            request[RECEIPT] = receipt
            remember_session(request, receipt.session)
            with closing(TurnWatch(service.sessions, service.hub, receipt, feed, quiet_s=service.ping_s)) as watch:
                respond = self._stream if chat.stream else self._whole
                try:
                    return await self._while_wanted(request, receipt, respond(request, chat, receipt, watch))
                except ConnectionError:
                    await self._client_left(receipt, stop_turn=stop_if_left)
                    raise

    # ------------------------------------------------------------ in

    async def _read(self, request: web.Request) -> tuple[ChatRequest, Submission]:
        session = parameter.session_in_header(request)
        key = parameter.idempotency_key(request)
        chat = parse_chat_request(await self._service.read_json(request))
        check_model(chat.model, self._service.models())
        submission = Submission(
            turn=self._service.new_turn_id(),
            messages=chat.encoded(last_only=session is not None),
            source=Source(platform=self._service.platform, user=chat.user),
            session=session,
            options=chat.options,
        )
        return chat, submission if key is None else _only_once(submission, key)

    # ------------------------------------------------------------ out

    async def _whole(
        self, request: web.Request, chat: ChatRequest, receipt: Receipt, watch: TurnWatch
    ) -> web.StreamResponse:
        answer = _settled(request, await watch.outcome())
        return json_response(self._completion(chat, receipt).whole(answer))

    async def _stream(
        self, request: web.Request, chat: ChatRequest, receipt: Receipt, watch: TurnWatch
    ) -> web.StreamResponse:
        completion = self._completion(chat, receipt)
        stream = await open_stream(request)
        await stream.send(completion.first_chunk())
        outcome, sent = await self._stream_text(stream, completion, watch)
        answer = _settled(request, outcome)
        if rest := _unsent(answer, sent):
            await stream.send(completion.text_chunk(rest))
        await stream.send(completion.finish_chunk(answer))
        await stream.send(completion.session_event(), event="hermes.session")
        if chat.include_usage:  # last: client libraries keep the usage of the last chunk
            await stream.send(completion.usage_chunk(answer))
        await stream.done()
        return stream.response

    async def _stream_text(
        self, stream: EventStream, completion: Completion, watch: TurnWatch
    ) -> tuple[TurnOutcome, str]:
        """The outcome, and as much of its text as has been sent."""
        sent: list[str] = []
        while True:
            match await watch.step():
                case None:
                    await stream.ping()
                case str() as text:
                    sent.append(text)
                    await stream.send(completion.text_chunk(text))
                case TurnAnswered() | TurnGaveUp() as outcome:
                    return outcome, "".join(sent)

    def _completion(self, chat: ChatRequest, receipt: Receipt) -> Completion:
        return Completion(receipt=receipt, created=int(self._service.clock()), model=chat.model)

    # ------------------------------------------------------------ who still waits

    async def _while_wanted(
        self, request: web.Request, receipt: Receipt, work: Coroutine[Any, Any, web.StreamResponse]
    ) -> web.StreamResponse:
        """The work's response, unless the client leaves or the time is up: then the work ends, but not the turn."""
        lost = connection_of(request).lost
        response = await until(work, lost, self._service.lifetime.over)
        if response is not None:
            return response
        if lost.done():
            raise ConnectionResetError("the client left")
        then = (
            "send it again under the same Idempotency-Key" if _is_keyed(request) else _where_stored(receipt.session)
        )
        message = f"The daemon is stopping. Turn {receipt.turn} is stored and goes on after the next start"
        raise StoppingError(f"{message}; for its answer, then: {then}")

    async def _client_left(self, receipt: Receipt, *, stop_turn: bool) -> None:
        logger.info("nobody waits for turn {} of session {} any more", receipt.turn, receipt.session)
        if not stop_turn:
            return
        try:
            await self._service.sessions.stop_turn(receipt.session, "its client left", receipt.turn)
        except HermesError as error:
            logger.warning("turn {} of session {} was not stopped: {}", receipt.turn, receipt.session, error)


def _only_once(submission: Submission, key: str) -> Submission:
    """The same key is the same turn; the fingerprint tells a repeated request from another one under its key."""
    content = hashlib.sha256()
    for part in ((submission.session or "").encode(), submission.options, *submission.messages):
        content.update(len(part).to_bytes(8, "big") + part)
    # One space for both doors, whatever the platform: a retry through the other one is still the same turn.
    inbound = InboundKey(f"api:{hashlib.sha256(key.encode()).hexdigest()}")
    return replace(submission, inbound=inbound, fingerprint=content.digest())


def _noting(receipt: Receipt, chat: ChatRequest, submission: Submission) -> Receipt:
    notices = [receipt.notice, *chat.passed_over(last_only=submission.session is not None)]
    return replace(receipt, notice=" ".join(filter(None, notices)))


def _settled(request: web.Request, outcome: TurnOutcome) -> TurnAnswered:
    match outcome:
        case TurnAnswered():
            _log_end(request, outcome, "was answered")
            return outcome
        case TurnGaveUp(failure=failure):
            _log_end(request, outcome, f"failed: {failure.kind}")
            raise ProblemError(problem.of_failure(failure, keyed=_is_keyed(request)))


def _log_end(request: web.Request, outcome: TurnOutcome, how: str) -> None:
    if request[RECEIPT].duplicate:  # the turn did not end a second time
        how = "was replayed: its Idempotency-Key came again"
    logger.info("turn {} of session {} {}", outcome.turn, outcome.session, how)


def _is_keyed(request: web.Request) -> bool:
    return parameter.IDEMPOTENCY_HEADER in request.headers


def _where_stored(session: SessionId) -> str:
    return f"GET /api/sessions/{session}/messages"


def _unsent(answer: TurnAnswered, sent: str) -> str:
    """Usually nothing; the rest, when events were missed on the way."""
    if not answer.text.startswith(sent):
        message = (
            "The turn was begun anew after part of its first answer had been sent. "
            f"The answer that counts is stored: {_where_stored(answer.session)}"
        )
        raise ProblemError(Problem(status=500, code="stream_begun_anew", message=message))
    return answer.text.removeprefix(sent)
