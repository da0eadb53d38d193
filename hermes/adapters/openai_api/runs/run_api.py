"""/v1/runs: start a turn, then read its state and events, answer its questions, or stop it.

A run is a turn of a session, and all its events come from the journal. Any number of clients can follow it, each from
any event, also across a restart of the daemon.
"""

from __future__ import annotations

from contextlib import closing
from typing import Annotated, Literal

from aiohttp import web
from msgspec import UNSET, Meta, UnsetType

from hermes.adapters.http import parameter
from hermes.adapters.http.caller import is_owner
from hermes.adapters.http.connection import connection_of
from hermes.adapters.http.event_stream import EventStream, frame, open_stream
from hermes.adapters.http.listener import until
from hermes.adapters.http.problem import refusal
from hermes.adapters.http.schema import Fields, SessionIdText, Text
from hermes.adapters.http.service import RECEIPT, Service, json_response, remember_session
from hermes.adapters.openai_api.model_api import check_model
from hermes.adapters.openai_api.responses.stored_items import stored_items
from hermes.adapters.openai_api.runs.run_object import RunObject, event_of, is_last, place_of
from hermes.adapters.openai_api.runs.run_reader import RunFilter, RunReader, RunStatus
from hermes.adapters.openai_api.session_wish_api import STOPPED_BY_REQUEST, AnswerRequest
from hermes.adapters.openai_api.turns.session_choice import read_choice
from hermes.adapters.openai_api.turns.shared_turn import SharedTurns
from hermes.adapters.openai_api.turns.text_command import TextCommands, command_in, records_of
from hermes.adapters.openai_api.turns.token_parameter import not_found, read_token
from hermes.adapters.openai_api.turns.turn_follower import TurnFollower, TurnUpdate
from hermes.adapters.openai_api.turns.turn_intake import Intake, TurnIntake
from hermes.adapters.openai_api.turns.turn_request import read_run, turn_request
from hermes.adapters.openai_api.turns.turn_view import turn_of
from hermes.domain.ids import RUN, SessionId, TurnToken
from hermes.domain.read.views import TurnRecord
from hermes.domain.turn.submission import Handling
from hermes.services.commands.registry import Parsed

MAX_LISTED = 100
CURSOR = r"^[1-9][0-9]{0,17}$(?!\n)"  # position in the journal
_STOPPING = (
    "The daemon stops or restarts. The run is stored and continues when the daemon is back: request its events then, "
    "with last_event_id in the header Last-Event-ID to get only later events."
)


class RunListQuery(Fields):
    limit: Annotated[int, Meta(ge=1, le=MAX_LISTED)] = 20
    cursor: Annotated[str, Meta(pattern=CURSOR)] | UnsetType = UNSET
    session_id: SessionIdText | UnsetType = UNSET
    platform: str = ""
    status: RunStatus | UnsetType = UNSET


class ApprovalRequest(Fields):
    choice: Literal["once", "session", "always", "deny"]
    call_id: Text | None = None


class RunApi:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._turns = SharedTurns(service.sessions)
        self._intake = TurnIntake(service)
        self._runs = RunReader(service.sessions)

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/v1/runs", self.create),
            web.get("/v1/runs", self.all),
            web.get("/v1/runs/{id}", self.one),
            web.get("/v1/runs/{id}/events", self.events),
            web.post("/v1/runs/{id}/approval", self.approval),
            web.post("/v1/runs/{id}/answer", self.answer),
            web.post("/v1/runs/{id}/stop", self.stop),
        ]

    async def create(self, request: web.Request) -> web.Response:
        service = self._service
        body = await service.read_turn(request, read_run)
        fields = read_run(body)
        asked = turn_request(fields, body, service.model_name, await stored_items(service.sessions, fields))
        check_model(asked.model, service.models())
        source = service.source(request, asked.user)
        choice = read_choice(request, source.platform, asked.session, fields.previous_response_id)
        prepare = self._intake.prepare
        intake = prepare(request, body, asked.given, options=asked.options, source=source, choice=choice)
        if (command := command_in(asked.given, TextCommands(service.text_commands))) is not None:
            return await self._command(request, intake, command)
        receipt = await self._intake.submit(intake)
        request[RECEIPT] = receipt
        run = await self._runs.run(TurnToken(session=receipt.session, turn=receipt.turn))
        remember_session(request, run.session)
        notice = " ".join(filter(None, (receipt.notice, intake.ignored(receipt), asked.notice)))
        body = {**run.object(), "handling": receipt.handling, **({"notice": notice} if notice else {})}
        return json_response(body, status=202)

    async def _command(self, request: web.Request, intake: Intake, command: Parsed) -> web.Response:
        """Run a command immediately. It never reaches the model, and its run is not stored."""
        submission, reply = await self._intake.command(intake, command)
        records = records_of(reply, submission, self._service.clock(), self._service.model_name)
        session = records[0].session
        if session:
            remember_session(request, session)
        name = TurnToken(session=session, turn=submission.turn).text(RUN)
        run = RunObject(id=name, turn=submission.turn, session=session, records=records)
        return json_response({**run.object(), "handling": Handling.STARTED}, status=202)

    async def all(self, request: web.Request) -> web.Response:
        """List runs, newest first. A page may be short or empty although `next_cursor` is set."""
        asked = parameter.query(request, RunListQuery)
        wanted = RunFilter(
            session=SessionId(asked.session_id) if asked.session_id else None,
            platform=asked.platform,
            status=asked.status or "",
        )
        before = int(asked.cursor) if asked.cursor else None
        page = await self._runs.page(wanted, before=before, limit=asked.limit)
        return json_response(
            {
                "object": "list",
                "data": [run.object() for run in page.runs],
                "has_more": page.cursor is not None,
                "next_cursor": None if page.cursor is None else str(page.cursor),
            }
        )

    async def one(self, request: web.Request) -> web.Response:
        run = await self._runs.run(read_token(request.match_info["id"], RUN))
        remember_session(request, run.session)
        return json_response(run.object())

    # ------------------------------------------------------------ answers and stop

    async def approval(self, request: web.Request) -> web.Response:
        asked = await self._service.read(request, ApprovalRequest)
        return await self._answer(request, asked.choice, asked.call_id or "", approving=True)

    async def answer(self, request: web.Request) -> web.Response:
        asked = await self._service.read(request, AnswerRequest)
        return await self._answer(request, asked.answer, asked.call_id or "", approving=False)

    async def _answer(self, request: web.Request, said: str, call: str, *, approving: bool) -> web.Response:
        token = read_token(request.match_info["id"], RUN)
        run = await self._runs.run(token)
        remember_session(request, run.session)
        asked = run.asked
        if asked is None or call not in ("", asked.call) or (approving and not asked.approval):
            what = "an approval" if approving else "an answer"
            raise refusal(409, "not_waiting", f"This run is {run.status}: it does not wait for {what}.")
        source = self._service.source(request)
        await self._service.sessions.answer(run.session, said, source, asked.call)
        return json_response((await self._runs.run(token)).object())

    async def stop(self, request: web.Request) -> web.Response:
        token = read_token(request.match_info["id"], RUN)
        run = await self._runs.run(token)
        remember_session(request, run.session)
        turn = turn_of(run.records, token.turn)
        await self._service.sessions.stop_turn(run.session, STOPPED_BY_REQUEST, turn)
        return json_response((await self._runs.run(token)).object())

    # ------------------------------------------------------------ events

    async def events(self, request: web.Request) -> web.StreamResponse:
        service = self._service
        token = read_token(request.match_info["id"], RUN)
        after = parameter.header(request, parameter.LAST_EVENT_HEADER)
        shared = self._turns.of(token.session, token.turn)
        follower = TurnFollower(shared, service.hub, token.turn, quiet_s=service.ping_s)
        with closing(follower):  # subscribe before reading the journal, so that no event is missed
            records = await shared.records()
            if not records:
                raise not_found(token.text(RUN), RUN)
            remember_session(request, records[-1].session)
            if is_last(records[-1]) and place_of(records[-1]) == after:
                return web.Response(status=204)  # no more events: stops clients that reconnect automatically
            known = after if after is not None and after in set(map(place_of, records)) else None
            connection_of(request).follows()
            frames = shared.frames if is_owner() else {}  # the owner's show more
            events = _RunEventStream(token.text(RUN), await open_stream(request), known, frames)
            lost, lifetime = connection_of(request).lost, service.lifetime
            is_over = await until(events.all(follower), lost, lifetime.leaving)
            if is_over is None and not lost.done():
                await until(events.report_stop(), lost, lifetime.over)
            return events.stream.response


class _RunEventStream:
    """Event stream of one reader, after its last event."""

    def __init__(self, run: str, stream: EventStream, after: str | None, frames: dict[str, bytes]) -> None:
        self.stream = stream
        self._frames = frames
        self._run = run
        self._after = after
        self._last = after or ""  # id of the last event that a client can continue from
        self._records: list[TurnRecord] = []

    async def all(self, follower: TurnFollower) -> bool:
        """Send all events. Returns True if the run is over."""
        while True:
            update = await follower.step()
            if update is None:
                await self.stream.ping()
                continue
            await self._send(update)
            if is_last(update):
                return True

    async def report_stop(self) -> None:
        """Report that the daemon stops before the run is over."""
        where = self._records[-1].session if self._records else ""
        fields = {"text": _STOPPING, "last_event_id": self._last or None}
        await self.stream.send({"run_id": self._run, "session_id": where, **fields}, event="daemon.stopping")

    async def _send(self, update: TurnUpdate) -> None:
        place = ""
        if isinstance(update, TurnRecord):
            self._records.append(update)
            place = place_of(update)
            if self._after is not None:
                if place == self._after:
                    self._after = None
                return
            if place not in self._frames:
                self._frames[place] = self._frame(update, place)
            encoded = self._frames[place]
        else:
            encoded = self._frame(update, place)
        if encoded:
            self._last = place or self._last  # a started event is completed before the stop is reported
            await self.stream.send_frame(encoded)

    def _frame(self, update: TurnUpdate, place: str) -> bytes:
        """Encode an event; empty if there is none. Frames of records are shared by all readers."""
        named = event_of(update, self._records)
        if named is None:
            return b""
        name, fields = named
        where = self._records[-1].session if self._records else ""
        at = {"at": update.record.at} if isinstance(update, TurnRecord) else {}
        return frame({"run_id": self._run, "session_id": where, **at, **fields}, name, place)
