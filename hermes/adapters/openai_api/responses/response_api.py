"""/v1/responses: a turn as OpenAI's Response, plain or streamed, and read back from the journal.

Everything is stored. A response that was deleted, or requested with store=false, cannot be read back or continued by
its id.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from dataclasses import replace

from aiohttp import web

from hermes.adapters.http import parameter
from hermes.adapters.http.event_stream import EventStream, open_stream
from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.http.service import RECEIPT, Service, json_response, remember_session
from hermes.adapters.openai_api.model_api import check_model
from hermes.adapters.openai_api.responses.response_events import ResponseEvents
from hermes.adapters.openai_api.responses.response_object import Answering
from hermes.adapters.openai_api.responses.stored_items import stored_items
from hermes.adapters.openai_api.turns.pending import asked_in
from hermes.adapters.openai_api.turns.placement import gone_fact, is_gone
from hermes.adapters.openai_api.turns.session_choice import read_choice
from hermes.adapters.openai_api.turns.shared_turn import SharedTurn
from hermes.adapters.openai_api.turns.token_parameter import not_found, read_token
from hermes.adapters.openai_api.turns.turn_follower import TurnFollower, TurnUpdate
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
from hermes.domain.events import CallAsked, TurnGaveUp
from hermes.domain.ids import RESPONSE, SessionId, TurnToken
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import Asked, MessageReceived
from hermes.domain.submission import Receipt
from hermes.ports.hub import Subscription

_GONE = b"1"


class ResponseApi:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._intake = TurnIntake(service)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/responses", self.create),
            web.get("/v1/responses/{id}", self.one),
            web.delete("/v1/responses/{id}", self.delete),
        ]

    # ------------------------------------------------------------ create

    async def create(self, request: web.Request) -> web.StreamResponse:
        service = self._service
        stop_if_left = parameter.flag(request, parameter.CANCEL_HEADER)
        own_events = parameter.flag(request, parameter.EVENTS_HEADER)
        asked, turn, intake = await self._read(request)
        with closing(service.hub.subscribe(turn=intake.submission.turn)) as feed:
            receipt = await self._intake.submit(intake)
            notices = (receipt.notice, intake.ignored(receipt), turn.notice)
            receipt = replace(receipt, notice=" ".join(filter(None, notices)))
            request[RECEIPT] = receipt
            remember_session(request, receipt.session)
            if asked.store is False and not receipt.duplicate:
                await service.sessions.remember(gone_fact(receipt.turn), _GONE)
            if asked.stream:
                own_events = own_events or EVENTS in (asked.include or ())
                work = self._stream(request, receipt, feed, own_events=own_events)
            elif asked.background:
                return await self._now(receipt)
            else:
                work = self._whole(request, receipt, feed)
            return await while_wanted(service, request, receipt, work, stop_if_left=stop_if_left)

    async def _read(self, request: web.Request) -> tuple[ResponseRequest, TurnRequest, Intake]:
        service = self._service
        body = await service.read_turn(request)
        asked = read_response(body)
        _check(asked)
        turn = turn_request(asked, body, service.model_name, await stored_items(service.sessions, asked))
        check_model(turn.model, service.models())
        source = service.source(request, turn.user)
        choice = read_choice(request, source.platform, turn.session, asked.previous_response_id)
        prepare = self._intake.prepare
        return asked, turn, prepare(request, body, turn.given, options=turn.options, source=source, choice=choice)

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
        self, request: web.Request, receipt: Receipt, feed: Subscription, *, own_events: bool
    ) -> web.StreamResponse:
        service = self._service
        records = await service.sessions.records(receipt.session, receipt.turn)
        with closing(self._follower(receipt, feed)) as follower:
            stream = await open_stream(request)
            events = ResponseEvents(_answering(receipt, receipt.session), own_events=own_events)
            await _send(stream, events.begin(records))
            while not events.over:
                update = await follower.step()
                await (stream.ping() if update is None else _send(stream, events.of_update(update)))
                if not own_events and _may_wait(update):
                    await self._send_question(receipt, stream, events)
        return stream.response

    async def _send_question(self, receipt: Receipt, stream: EventStream, events: ResponseEvents) -> None:
        """End the stream if the session waits for a person, also for a turn that comes first."""
        head = (await self._service.sessions.view(receipt.session)).session
        if (asked := asked_in(head)) is not None:
            await _send(stream, events.of_question(asked))

    def _follower(self, receipt: Receipt, feed: Subscription) -> TurnFollower:
        service = self._service
        heard = None if receipt.duplicate else feed
        if receipt.into is not None:
            heard = service.hub.subscribe(turn=receipt.into)
        turn = receipt.into or receipt.turn
        return TurnFollower(
            SharedTurn(service.sessions, receipt.session, turn),
            service.hub,
            turn,
            quiet_s=service.ping_s,
            feed=heard,
            answering=receipt.into is not None,
        )

    # ------------------------------------------------------------ read and delete

    async def one(self, request: web.Request) -> web.Response:
        text = request.match_info["id"]
        token = read_token(text, RESPONSE)
        sessions = self._service.sessions
        records = await sessions.records(token.session, token.turn)
        if not records or await is_gone(self._service.sessions, token):
            raise not_found(text, RESPONSE)
        outcome = await sessions.outcome(token.session, token.turn)
        session = outcome.session if outcome is not None else (await sessions.view(token.session)).session.id
        answering = Answering(id=text, turn=token.turn, session=remember_session(request, session))
        gave_up = outcome if isinstance(outcome, TurnGaveUp) else None
        return json_response(answering.object(records, gave_up=gave_up))

    async def delete(self, request: web.Request) -> web.Response:
        text = request.match_info["id"]
        token = read_token(text, RESPONSE)
        if not await self._service.sessions.records(token.session, token.turn) or await is_gone(
            self._service.sessions, token
        ):
            raise not_found(text, RESPONSE)
        await self._service.sessions.remember(gone_fact(token.turn), _GONE)
        return json_response({"id": text, "object": "response", "deleted": True})


async def _send(stream: EventStream, events: Iterable[JsonObject]) -> None:
    for event in events:
        await stream.send(event, event=event["type"])


def _may_wait(update: TurnUpdate | None) -> bool:
    """Return True if the session may wait for a person now."""
    return update is None or (isinstance(update, TurnRecord) and isinstance(update.record, MessageReceived | Asked))


def _check(asked: ResponseRequest) -> None:
    if asked.background and asked.store is False:
        message = "background needs store: the response is read back by its id."
        raise BadInputError(message, param="store", code="invalid_value")


def _answering(receipt: Receipt, session: SessionId) -> Answering:
    token = TurnToken(session=receipt.session, turn=receipt.turn)
    return Answering(id=token.text(RESPONSE), turn=receipt.turn, session=session, notice=receipt.notice)
