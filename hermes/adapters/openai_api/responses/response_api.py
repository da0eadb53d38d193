"""/v1/responses: a turn as OpenAI's Response, plain or streamed, and read back from the journal.

Everything is stored. A response that was deleted, or requested with store=false, cannot be read back or continued by
its id.
"""

from __future__ import annotations

from contextlib import closing

from aiohttp import web

from hermes.adapters.http import parameter
from hermes.adapters.http.service import RECEIPT, Service, json_response, remember_session
from hermes.adapters.openai_api.model_api import check_model
from hermes.adapters.openai_api.responses.command_response import send_command_response
from hermes.adapters.openai_api.responses.response_object import Answering
from hermes.adapters.openai_api.responses.response_reader import GONE, ResponseReader
from hermes.adapters.openai_api.responses.response_stream import ResponseStream, follower_of
from hermes.adapters.openai_api.responses.stored_items import stored_items
from hermes.adapters.openai_api.turns.placement import gone_fact
from hermes.adapters.openai_api.turns.session_choice import read_choice
from hermes.adapters.openai_api.turns.text_command import TextCommands, command_in, records_of
from hermes.adapters.openai_api.turns.turn_intake import Intake, TurnIntake
from hermes.adapters.openai_api.turns.turn_request import (
    EVENTS,
    ResponseRequest,
    TurnRequest,
    read_response,
    turn_request,
)
from hermes.adapters.openai_api.turns.turn_wait import log_end, settled, while_wanted
from hermes.adapters.openai_api.turns.turn_watch import TurnWatch
from hermes.domain.errors import BadInputError
from hermes.domain.events import CallAsked
from hermes.domain.ids import RESPONSE, SessionId, TurnToken
from hermes.domain.turn.submission import Receipt
from hermes.domain.values import replace
from hermes.ports.hub import Subscription
from hermes.services.commands.registry import Parsed


class ResponseApi:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._intake = TurnIntake(service)
        self._stored = ResponseReader(service)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/responses", self.create),
            *self._stored.routes(),
        ]

    # ------------------------------------------------------------ create

    async def create(self, request: web.Request) -> web.StreamResponse:
        service = self._service
        stop_if_left = parameter.flag(request, parameter.CANCEL_HEADER)
        own_events = parameter.flag(request, parameter.EVENTS_HEADER)
        asked, turn, intake = await self._read(request)
        if (command := command_in(turn.given, TextCommands(service.text_commands))) is not None:
            return await self._command(request, asked, intake, command)
        with closing(service.hub.subscribe(turn=intake.submission.turn)) as feed:
            receipt = await self._intake.submit(intake)
            notices = (receipt.notice, intake.ignored(receipt), turn.notice)
            receipt = replace(receipt, notice=" ".join(filter(None, notices)))
            request[RECEIPT] = receipt
            remember_session(request, receipt.session)
            if asked.store is False and not receipt.duplicate:
                await service.sessions.remember(gone_fact(receipt.turn), GONE)
            if asked.stream:
                work = self._stream(request, receipt, feed, own_events or EVENTS in (asked.include or ()))
            elif asked.background:
                return await self._now(receipt)
            else:
                work = self._whole(request, receipt, feed)
            return await while_wanted(service, request, receipt, work, stop_if_left=stop_if_left)

    async def _read(self, request: web.Request) -> tuple[ResponseRequest, TurnRequest, Intake]:
        service = self._service
        body = await service.read_turn(request, read_response)
        asked = read_response(body)
        _check(asked)
        turn = turn_request(asked, body, service.model_name, await stored_items(service.sessions, asked))
        check_model(turn.model, service.models())
        source = service.source(request, turn.user)
        choice = read_choice(request, source.platform, turn.session, asked.previous_response_id)
        prepare = self._intake.prepare
        return asked, turn, prepare(request, body, turn.given, options=turn.options, source=source, choice=choice)

    async def _command(
        self, request: web.Request, asked: ResponseRequest, intake: Intake, command: Parsed
    ) -> web.StreamResponse:
        """Run a command immediately. It never reaches the model."""
        submission, reply = await self._intake.command(intake, command)
        records = records_of(reply, submission, self._service.clock(), self._service.model_name)
        session = records[0].session
        if session:
            remember_session(request, session)
        answering = _answering(Receipt(session=session, turn=submission.turn), session)
        return await send_command_response(request, answering, records, stream=bool(asked.stream))

    # ------------------------------------------------------------ answer

    async def _whole(self, request: web.Request, receipt: Receipt, feed: Subscription) -> web.StreamResponse:
        service = self._service
        with closing(TurnWatch(service.sessions, service.hub, receipt, feed, quiet_s=service.ping_s)) as watch:
            outcome = await watch.outcome()
        if isinstance(outcome, CallAsked):
            log_end(request, outcome, "waits for a person")
            remember_session(request, outcome.session)
        else:
            settled(request, outcome)
        records = await service.sessions.records(receipt.session, receipt.turn)
        answering = _answering(receipt, outcome.session)
        return json_response(answering.object(records, asked=outcome if isinstance(outcome, CallAsked) else None))

    async def _now(self, receipt: Receipt) -> web.Response:
        """Return a background response as it is now."""
        records = await self._service.sessions.records(receipt.session, receipt.turn)
        return json_response(_answering(receipt, receipt.session).object(records))

    async def _stream(
        self, request: web.Request, receipt: Receipt, feed: Subscription, own_events: bool
    ) -> web.StreamResponse:
        stream = ResponseStream(
            service=self._service,
            answering=_answering(receipt, receipt.session),
            token=_token(receipt),
            own_events=own_events,
        )
        return await stream.send(request, follower_of(self._service, receipt, feed))


def _token(receipt: Receipt) -> TurnToken:
    return TurnToken(session=receipt.session, turn=receipt.turn)


def _check(asked: ResponseRequest) -> None:
    if asked.background and asked.store is False:
        message = "background needs store: the response is read back by its id."
        raise BadInputError(message, param="store", code="unprocessable")


def _answering(receipt: Receipt, session: SessionId) -> Answering:
    return Answering(id=_token(receipt).text(RESPONSE), turn=receipt.turn, session=session, notice=receipt.notice)
