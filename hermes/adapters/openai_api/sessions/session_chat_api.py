"""POST /api/sessions/{id}/chat and /chat/stream: one turn in a stored session."""

from __future__ import annotations

from contextlib import closing

from aiohttp import web

from hermes.adapters.http import parameter
from hermes.adapters.http.event_stream import EventStream, open_stream
from hermes.adapters.http.field import encode
from hermes.adapters.http.key_scope import may_approve
from hermes.adapters.http.presentation import JsonObject, plain
from hermes.adapters.http.schema import Fields, FilledText
from hermes.adapters.http.service import RECEIPT, Service, json_response, remember_session
from hermes.adapters.openai_api.turns import pending, turn_event
from hermes.adapters.openai_api.turns.turn_wait import check_intake, only_once, settled, while_wanted
from hermes.adapters.openai_api.turns.turn_watch import TurnWatch
from hermes.domain.events import CallAsked, ReasoningDelta, TurnAnswered, TurnGaveUp
from hermes.domain.ids import RUN, TurnToken
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Receipt, Submission


class SessionMessage(Fields):
    message: FilledText
    user: str = ""


class SessionChatApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/api/sessions/{id}/chat", self.chat),
            web.post("/api/sessions/{id}/chat/stream", self.stream),
        ]

    async def chat(self, request: web.Request) -> web.StreamResponse:
        return await self._turn(request, streamed=False)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        return await self._turn(request, streamed=True)

    async def _turn(self, request: web.Request, *, streamed: bool) -> web.StreamResponse:
        service, submission = self._service, await self._submission(request)
        await check_intake(service, submission)
        with closing(service.hub.subscribe(turn=submission.turn)) as feed:
            receipt = await service.sessions.submit(submission)
            request[RECEIPT] = receipt
            remember_session(request, receipt.session)
            with closing(TurnWatch(service.sessions, service.hub, receipt, feed, quiet_s=service.ping_s)) as watch:
                work = self._events(request, receipt, watch) if streamed else self._whole(request, receipt, watch)
                return await while_wanted(service, request, receipt, work)

    async def _submission(self, request: web.Request) -> Submission:
        service, session = self._service, parameter.session_in_path(request)
        asked = await service.read(request, SessionMessage)
        await service.sessions.view(session)  # must exist: a message would create it
        submission = Submission(
            turn=service.new_turn_id(),
            messages=(EncodedMessage(encode({"role": "user", "content": asked.message}, "message")),),
            source=service.source(request, asked.user),
            session=session,
        )
        return only_once(submission, parameter.idempotency_key(request), session)

    async def _whole(self, request: web.Request, receipt: Receipt, watch: TurnWatch) -> web.StreamResponse:
        outcome = await watch.outcome()
        if isinstance(outcome, CallAsked):
            return json_response({**_answer(receipt, _question(outcome, receipt)), "pending": pending.field(outcome)})
        answer = settled(request, outcome)
        return json_response({**_answer(receipt, answer.text), **_end(answer)})

    async def _events(self, request: web.Request, receipt: Receipt, watch: TurnWatch) -> web.StreamResponse:
        stream = await open_stream(request)
        numbered = _Numbered(stream, receipt, self._service)
        await numbered.send("run.started", {"handling": receipt.handling})
        while True:
            match await watch.step():
                case None:
                    await stream.ping()
                case str() as text:
                    await numbered.send("assistant.delta", {"delta": text})
                case TurnAnswered() | TurnGaveUp() as outcome:
                    answer = settled(request, outcome)
                    await numbered.send("assistant.completed", {"content": answer.text})
                    await numbered.send("run.completed", _end(answer))
                    await numbered.send("done", {})
                    return stream.response
                case CallAsked() as asked:
                    await numbered.send(*turn_event.of_event(asked))
                    await numbered.send("assistant.completed", {"content": _question(asked, receipt)})
                    await numbered.send("done", {})
                    return stream.response
                case ReasoningDelta(text=text):
                    await numbered.send("reasoning.delta", {"delta": text})
                case shown:
                    await numbered.send(*turn_event.of_event(shown))


class _Numbered:
    """Events of one answer, each with its number, its time and the ids."""

    def __init__(self, stream: EventStream, receipt: Receipt, service: Service) -> None:
        self._stream = stream
        self._receipt = receipt
        self._service = service
        self._number = 0

    async def send(self, name: str, fields: JsonObject) -> None:
        self._number += 1
        about = {"seq": self._number, "ts": self._service.clock(), **_ids(self._receipt)}
        await self._stream.send({**about, **fields}, event=name)


def _ids(receipt: Receipt) -> JsonObject:
    run = TurnToken(session=receipt.session, turn=receipt.turn).text(RUN)
    return {"session_id": receipt.session, "turn_id": receipt.turn, "run_id": run}


def _question(asked: CallAsked, receipt: Receipt) -> str:
    return pending.in_words(asked, receipt.into or receipt.turn, may_approve=may_approve())


def _answer(receipt: Receipt, text: str) -> JsonObject:
    return {**_ids(receipt), "message": {"role": "assistant", "content": text}}


def _end(answer: TurnAnswered) -> JsonObject:
    return {
        "session_id": answer.session,
        "finish_reason": answer.finish_reason,
        "usage": plain(answer.usage),
    }
