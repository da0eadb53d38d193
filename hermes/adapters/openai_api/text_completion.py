"""POST /v1/completions: the older form of a completion. The prompt is a person's message."""

from __future__ import annotations

from contextlib import closing
from typing import Annotated, Any

from aiohttp import web
from msgspec import Meta

from hermes.adapters.http.event_stream import open_stream
from hermes.adapters.http.key_scope import may_approve
from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.http.schema import Fields, FilledText, Text
from hermes.adapters.http.service import RECEIPT, Service, json_response, remember_session
from hermes.adapters.openai_api.chat_request import ChatTurn, parse_chat_request
from hermes.adapters.openai_api.model_api import check_model
from hermes.adapters.openai_api.turns import pending
from hermes.adapters.openai_api.turns.session_choice import read_choice
from hermes.adapters.openai_api.turns.turn_intake import Intake, TurnIntake
from hermes.adapters.openai_api.turns.turn_wait import settled, while_wanted
from hermes.adapters.openai_api.turns.turn_watch import TurnWatch
from hermes.adapters.openai_api.turns.turn_wish import Tokens, Unsupported
from hermes.domain.events import CallAsked, TurnAnswered, TurnGaveUp
from hermes.domain.turn.submission import Receipt


class TextCompletionRequest(Fields):
    prompt: FilledText | Annotated[list[FilledText], Meta(min_length=1, max_length=1)]
    model: FilledText | None = None
    stream: bool | None = None
    max_tokens: Tokens | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(ge=0, le=1)] | None = None
    stop: Text | Annotated[list[Text], Meta(max_length=4)] | None = None
    seed: Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    user: Text | None = None
    n: Annotated[int, Meta(ge=1, le=1)] | None = None
    best_of: Annotated[int, Meta(ge=1, le=1)] | None = None
    suffix: Unsupported = None
    logprobs: Unsupported = None


_PASSED_ON = ("stream", "max_tokens", "temperature", "top_p", "stop", "seed", "user")


class TextCompletions:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._intake = TurnIntake(service)

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/completions", self.complete)]

    async def complete(self, request: web.Request) -> web.StreamResponse:
        service = self._service
        chat, intake = await self._read(request)
        with closing(service.hub.subscribe(turn=intake.submission.turn)) as feed:
            receipt = await self._intake.submit(intake)
            request[RECEIPT] = receipt
            remember_session(request, receipt.session)
            with closing(TurnWatch(service.sessions, service.hub, receipt, feed, quiet_s=service.ping_s)) as watch:
                respond = self._stream if chat.stream else self._whole
                return await while_wanted(service, request, receipt, respond(request, chat, receipt, watch))

    async def _read(self, request: web.Request) -> tuple[ChatTurn, Intake]:
        body = chat_body(await self._service.read(request, TextCompletionRequest), self._service.model_name)
        chat = parse_chat_request(body)
        check_model(chat.model, self._service.models())
        source = self._service.source(request, chat.user)
        choice = read_choice(request, source.platform)
        prepare = self._intake.prepare
        return chat, prepare(request, body, chat.given, options=chat.options, source=source, choice=choice)

    async def _whole(
        self, request: web.Request, chat: ChatTurn, receipt: Receipt, watch: TurnWatch
    ) -> web.StreamResponse:
        outcome = await watch.outcome()
        if isinstance(outcome, CallAsked):
            asked = pending.in_words(outcome, receipt.into or receipt.turn, may_approve=may_approve())
            return json_response(self._object(chat, receipt, asked, "stop"))
        answer = settled(request, outcome)
        used = {
            "prompt_tokens": answer.usage.prompt_tokens,
            "completion_tokens": answer.usage.completion_tokens,
            "total_tokens": answer.usage.prompt_tokens + answer.usage.completion_tokens,
        }
        return json_response({**self._object(chat, receipt, answer.text, answer.finish_reason), "usage": used})

    async def _stream(
        self, request: web.Request, chat: ChatTurn, receipt: Receipt, watch: TurnWatch
    ) -> web.StreamResponse:
        stream = await open_stream(request)
        while True:
            match await watch.step():
                case None:
                    await stream.ping()
                case str() as text:
                    await stream.send(self._object(chat, receipt, text))
                case CallAsked() as asked:
                    words = pending.in_words(asked, receipt.into or receipt.turn, may_approve=may_approve())
                    await stream.send(self._object(chat, receipt, words, "stop"))
                    break
                case TurnAnswered() | TurnGaveUp() as outcome:
                    answer = settled(request, outcome)
                    rest = watch.spoken.rest(answer.text)
                    await stream.send(self._object(chat, receipt, rest, answer.finish_reason))
                    break
                case _:
                    continue  # tools and notices have no place here
        await stream.done()
        return stream.response

    def _object(self, chat: ChatTurn, receipt: Receipt, text: str, finish: str | None = None) -> JsonObject:
        return {
            "id": f"cmpl-{receipt.turn}",
            "object": "text_completion",
            "created": int(self._service.clock()),
            "model": chat.model,
            "choices": [{"index": 0, "text": text, "logprobs": None, "finish_reason": finish}],
            "hermes": {"session_id": receipt.session, "turn_id": receipt.turn},
        }


def chat_body(asked: TextCompletionRequest, model: str) -> dict[str, Any]:
    """Return the body of a chat completion for a prompt."""
    prompt = asked.prompt if isinstance(asked.prompt, str) else asked.prompt[0]
    others = {name: value for name in _PASSED_ON if (value := getattr(asked, name)) is not None}
    return {"model": asked.model or model, **others, "messages": [{"role": "user", "content": prompt}]}
