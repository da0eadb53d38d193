"""POST /v1/chat/completions: one message, one durable turn, one answer, plain or streamed.

The answer starts after the message is durable. The final answer is the stored one, not the streamed text. A client
that disconnects does not stop its turn unless it asked for that in the request. A plain answer does not wait for a
person: it contains the open question, and the turn stays open.
"""

from __future__ import annotations

from contextlib import closing

from aiohttp import web

from hermes.adapters.http import parameter, problem
from hermes.adapters.http.event_stream import open_stream
from hermes.adapters.http.problem import ProblemError
from hermes.adapters.http.service import RECEIPT, Service, json_response, remember_session
from hermes.adapters.openai_api.chat_request import ChatTurn, check_chat_request, parse_chat_request
from hermes.adapters.openai_api.chat_stream import ChatStream
from hermes.adapters.openai_api.completion import ChatCompletion
from hermes.adapters.openai_api.model_api import check_model
from hermes.adapters.openai_api.turns.session_choice import read_choice
from hermes.adapters.openai_api.turns.side_request import is_side_request
from hermes.adapters.openai_api.turns.text_command import TextCommands, command_in
from hermes.adapters.openai_api.turns.turn_intake import Intake, TurnIntake
from hermes.adapters.openai_api.turns.turn_wait import check_intake, log_end, settled, while_wanted
from hermes.adapters.openai_api.turns.turn_watch import TurnWatch
from hermes.domain.events import CallAsked, TurnAnswered
from hermes.domain.ids import SessionId
from hermes.domain.turn.submission import Receipt, Submission
from hermes.domain.turn.usage import Usage
from hermes.domain.values import replace
from hermes.services.commands.registry import Parsed
from hermes.services.side_completion import SideCompletion
from hermes.system.crash_point import reach


class Chat:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._intake = TurnIntake(service)

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/chat/completions", self.completions)]

    async def completions(self, request: web.Request) -> web.StreamResponse:
        stop_if_left = parameter.flag(request, parameter.CANCEL_HEADER)
        chat, intake = await self._read(request)
        reach("http: received")
        service = self._service
        await check_intake(service, intake.submission)
        if (command := command_in(chat.given, TextCommands(service.text_commands))) is not None:
            return await self._command(request, chat, intake, command)
        if service.side is not None and intake.choice.is_open and is_side_request(chat.given):
            return await self._side(request, chat, intake.submission, service.side)
        with closing(service.hub.subscribe(turn=intake.submission.turn, text=chat.stream)) as feed:
            receipt = _with_notices(await self._intake.submit(intake), chat, intake)
            request[RECEIPT] = receipt
            remember_session(request, receipt.session)
            with closing(TurnWatch(service.sessions, service.hub, receipt, feed, quiet_s=service.ping_s)) as watch:
                respond = self._stream if chat.stream else self._whole
                work = respond(request, chat, receipt, watch)
                return await while_wanted(service, request, receipt, work, stop_if_left=stop_if_left)

    # ------------------------------------------------------------ commands

    async def _command(
        self, request: web.Request, chat: ChatTurn, intake: Intake, command: Parsed
    ) -> web.StreamResponse:
        """Run a command immediately. It never reaches the model; its reply has the form of an answer."""
        submission, reply = await self._intake.command(intake, command)
        if reply.receipt is not None:
            request[RECEIPT] = reply.receipt
        session = reply.session or submission.session or SessionId("")
        if session:
            remember_session(request, session)
        turn = reply.receipt.turn if reply.receipt is not None else submission.turn
        answer = TurnAnswered(
            session=session, turn=turn, text=reply.text, model=chat.model, finish_reason="stop", usage=Usage()
        )
        return await self._send(request, chat, answer)

    async def _side(
        self, request: web.Request, chat: ChatTurn, submission: Submission, side: SideCompletion
    ) -> web.StreamResponse:
        """Answer a side request of a chat program, without tools and without a session."""
        instructions = submission.instructions or chat.given.instructions
        report = await side.complete(
            submission.turn, submission.messages, instructions, options=submission.options, source=submission.source
        )
        if report.failure is not None:
            raise ProblemError(problem.of_failure(report.failure, keyed=False))
        answer = TurnAnswered(
            session=SessionId(""),
            turn=submission.turn,
            text=report.text,
            model=report.model,
            finish_reason=report.finish_reason,
            usage=report.usage,
        )
        return await self._send(request, chat, answer)

    async def _send(self, request: web.Request, chat: ChatTurn, answer: TurnAnswered) -> web.StreamResponse:
        """Send an answer that is complete."""
        completion = self._completion(chat, Receipt(session=answer.session, turn=answer.turn))
        if not chat.stream:
            return json_response(completion.whole(answer))
        stream = await open_stream(request)
        for chunk in (completion.first_chunk(), completion.text_chunk(answer.text), completion.finish_chunk(answer)):
            await stream.send(chunk)
        await stream.send(completion.session_event(), event="hermes.session")
        if chat.include_usage:
            await stream.send(completion.usage_chunk(answer))
        await stream.done()
        return stream.response

    # ------------------------------------------------------------ request

    async def _read(self, request: web.Request) -> tuple[ChatTurn, Intake]:
        body = await self._service.read_turn(request, check_chat_request)
        chat = parse_chat_request(body)
        check_model(chat.model, self._service.models())
        source = self._service.source(request, chat.user)
        choice = read_choice(request, source.platform, chat.session, chat.previous)
        prepare = self._intake.prepare
        intake = prepare(request, body, chat.given, options=chat.options, source=source, choice=choice)
        return chat, intake

    # ------------------------------------------------------------ answer

    async def _whole(
        self, request: web.Request, chat: ChatTurn, receipt: Receipt, watch: TurnWatch
    ) -> web.StreamResponse:
        outcome = await watch.outcome()
        completion = self._completion(chat, receipt)
        if isinstance(outcome, CallAsked):
            log_end(request, outcome, "waits for a person")
            remember_session(request, outcome.session)
            response = json_response(replace(completion, session=outcome.session).waiting(outcome))
            response.headers.update({parameter.COMPLETED_HEADER: "false", parameter.PARTIAL_HEADER: "true"})
            return response
        answer = settled(request, outcome)
        return json_response(replace(completion, session=answer.session).whole(answer))

    async def _stream(
        self, request: web.Request, chat: ChatTurn, receipt: Receipt, watch: TurnWatch
    ) -> web.StreamResponse:
        stream = await open_stream(request)
        waits = parameter.flag(request, parameter.EVENTS_HEADER)
        telling = ChatStream(stream, self._completion(chat, receipt), watch, waits=waits)
        outcome = await telling.until_the_end()
        if isinstance(outcome, CallAsked):
            log_end(request, outcome, "waits for a person")
            await telling.ask(outcome)
        else:
            await telling.finish(settled(request, outcome), include_usage=chat.include_usage)
        return stream.response

    def _completion(self, chat: ChatTurn, receipt: Receipt) -> ChatCompletion:
        created = int(self._service.clock())
        return ChatCompletion(receipt=receipt, session=receipt.session, created=created, model=chat.model)


def _with_notices(receipt: Receipt, chat: ChatTurn, intake: Intake) -> Receipt:
    notices = (receipt.notice, intake.ignored(receipt), chat.notice)
    return replace(receipt, notice=" ".join(filter(None, notices))) if any(notices) else receipt
