"""Tools of the MCP server. What a caller may reach is checked by the services, as for the other routes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import closing
from typing import Any

from aiohttp import web

from hermes.adapters.http import presentation
from hermes.adapters.http.caller import is_owner
from hermes.adapters.http.field import encode
from hermes.adapters.http.key_scope import may_approve
from hermes.adapters.http.problem import refusal
from hermes.adapters.http.service import Service
from hermes.adapters.openai_api.mcp import tool_input
from hermes.adapters.openai_api.mcp.event_wait import EventWait
from hermes.adapters.openai_api.runs.approval_api import question_id
from hermes.adapters.openai_api.sessions import session_list
from hermes.adapters.openai_api.turns import pending
from hermes.adapters.openai_api.turns.turn_wait import check_intake, only_once
from hermes.adapters.openai_api.turns.turn_watch import TurnWatch
from hermes.domain.events import CallAsked, TurnAnswered, TurnGaveUp, TurnOutcome
from hermes.domain.ids import Seq, SessionId
from hermes.domain.session.state import Session
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Receipt, Submission
from hermes.domain.values import dataclass
from hermes.ports.job.jobs import JobCaller

Answered = Coroutine[Any, Any, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedTool:
    """A tool that other programs call."""

    name: str
    about: str
    input: type[Any]
    run: Callable[[web.Request, Any], Answered]
    reads: bool = True
    owner: bool = False  # not for named keys


class ServedTools:
    def __init__(self, service: Service) -> None:
        self._service = service
        self._tools = {each.name: each for each in (*self._reading(), *self._acting())}

    def offered(self) -> Mapping[str, ServedTool]:
        """Return the tools of the caller, by name."""
        return {name: tool for name, tool in self._tools.items() if is_owner() or not tool.owner}

    def _reading(self) -> tuple[ServedTool, ...]:
        given = tool_input
        return (
            ServedTool(
                name="conversations_list",
                about="List conversations, last active first, with platform, title and state.",
                input=given.ListInput,
                run=self.conversations,
            ),
            ServedTool(
                name="conversation_get",
                about="Show one conversation: its state and why it is in it, and the question it waits for, if any.",
                input=given.SessionInput,
                run=self.conversation,
            ),
            ServedTool(
                name="messages_read",
                about="Read messages of a conversation, oldest first. Without `after`, the last ones.",
                input=given.ReadInput,
                run=self.messages,
            ),
            ServedTool(
                name="messages_search",
                about="Search the texts of all conversations.",
                input=given.SearchInput,
                run=self.search,
                owner=True,
            ),
            ServedTool(
                name="events_poll",
                about="Return stored events after a position, without waiting. Without one, the current position.",
                input=given.PollInput,
                run=self.poll,
            ),
            ServedTool(
                name="events_wait",
                about="Wait for the next stored events after a position: messages, answers, approvals, ends.",
                input=given.WaitInput,
                run=self.wait,
            ),
            ServedTool(
                name="permissions_list_open",
                about="List approvals and questions that wait for a person.",
                input=given.NoInput,
                run=self.permissions,
            ),
            ServedTool(
                name="processes_list",
                about="List background processes of all conversations.",
                input=given.NoInput,
                run=self.processes,
                owner=True,
            ),
            ServedTool(
                name="schedules_list",
                about="List scheduled jobs.",
                input=given.NoInput,
                run=self.schedules,
                owner=True,
            ),
            ServedTool(
                name="channels_list",
                about="List the chat platforms and their state.",
                input=given.NoInput,
                run=self.channels,
                owner=True,
            ),
        )

    def _acting(self) -> tuple[ServedTool, ...]:
        return (
            ServedTool(
                name="messages_send",
                about="Send a message to the agent and wait for its answer. If that takes longer than `wait_s`, the "
                "turn goes on: read it later with messages_read or events_wait. Without `session_id`, start a "
                "conversation.",
                input=tool_input.SendInput,
                run=self.send,
                reads=False,
            ),
            ServedTool(
                name="permissions_respond",
                about="Answer an approval with `choice`, or a question with `answer`. Ask your user first.",
                input=tool_input.RespondInput,
                run=self.respond,
                reads=False,
            ),
        )

    # ------------------------------------------------------------ conversations

    async def conversations(self, _request: web.Request, given: tool_input.ListInput) -> dict[str, Any]:
        wanted = session_list.SessionFilter(platform=given.platform, title=given.title)
        page = await session_list.read_page(self._service.sessions, wanted, after=None, limit=given.limit)
        return {
            "conversations": [presentation.session(each) for each in page.sessions],
            "has_more": page.after is not None,
        }

    async def conversation(self, _request: web.Request, given: tool_input.SessionInput) -> dict[str, Any]:
        view = await self._service.view(SessionId(given.session_id))
        asked = pending.asked_in(view.session)
        return {**presentation.view(view), "pending": None if asked is None else pending.field(asked)}

    async def messages(self, _request: web.Request, given: tool_input.ReadInput) -> dict[str, Any]:
        view = await self._service.view(SessionId(given.session_id))
        after = None if given.after is None else Seq(given.after)
        stored = await self._service.sessions.messages(view.session.id, after, given.limit, exact=True)
        return {"session_id": view.session.id, "messages": presentation.transcript(stored)}

    async def search(self, _request: web.Request, given: tool_input.SearchInput) -> dict[str, Any]:
        if self._service.search is None:
            raise refusal(501, "no_search", "This daemon has no search index.")
        found = await self._service.search.search(given.query, limit=given.limit)
        return {"hits": [presentation.plain(hit) for hit in found.hits]}

    async def send(self, request: web.Request, given: tool_input.SendInput) -> dict[str, Any]:
        service = self._service
        session = None if given.session_id is None else SessionId(given.session_id)
        content = encode({"role": "user", "content": given.text}, "text")
        submission = only_once(
            Submission(
                turn=service.new_turn_id(),
                messages=(EncodedMessage(content),),
                source=service.source(request),
                session=session,
            ),
            given.idempotency_key,
            session or "mcp",
        )
        await check_intake(service, submission)
        with closing(service.hub.subscribe(turn=submission.turn)) as feed:
            receipt = await service.sessions.submit(submission)
            with closing(TurnWatch(service.sessions, service.hub, receipt, feed, quiet_s=service.ping_s)) as watch:
                try:
                    async with asyncio.timeout(given.wait_s):
                        return _turn(receipt, await watch.outcome())
                except TimeoutError:
                    return {**_ids(receipt), "status": "running"}

    # ------------------------------------------------------------ events

    async def poll(self, _request: web.Request, given: tool_input.PollInput) -> dict[str, Any]:
        return await self._events(given, 0.0)

    async def wait(self, _request: web.Request, given: tool_input.WaitInput) -> dict[str, Any]:
        return await self._events(given, given.timeout_s)

    async def _events(self, given: tool_input.PollInput, timeout_s: float) -> dict[str, Any]:
        session = None
        if given.session_id is not None:
            session = (await self._service.view(SessionId(given.session_id))).session.id
        return await EventWait(self._service, session).wait(given.after, limit=given.limit, timeout_s=timeout_s)

    # ------------------------------------------------------------ permissions

    async def permissions(self, _request: web.Request, _given: tool_input.NoInput) -> dict[str, Any]:
        return {"open": [{"id": question_id(asked), **pending.field(asked)} for _, asked in await self._open()]}

    async def respond(self, request: web.Request, given: tool_input.RespondInput) -> dict[str, Any]:
        found = next((each for each in await self._open() if question_id(each[1]) == given.id), None)
        if found is None:
            raise refusal(404, "approval_not_found", f"No approval or question {given.id[:80]!r} is open.")
        head, asked = found
        said = given.choice if asked.approval else given.answer
        if said is None:
            raise refusal(409, "wrong_answer", f"This one needs {'choice' if asked.approval else 'answer'}.")
        await self._service.sessions.answer(head.id, said, self._service.source(request), asked.call)
        return {"id": given.id, "answered": True, "session_id": head.id}

    async def _open(self) -> list[tuple[Session, CallAsked]]:
        heads = await self._service.sessions.unfinished()
        found = ((head, pending.asked_in(head)) for head in heads)
        return [(head, asked) for head, asked in found if asked is not None]

    # ------------------------------------------------------------ the daemon

    async def processes(self, _request: web.Request, _given: tool_input.NoInput) -> dict[str, Any]:
        return {"processes": [self._service.shown_process(view) for view in self._service.processes.views()]}

    async def schedules(self, request: web.Request, _given: tool_input.NoInput) -> dict[str, Any]:
        jobs = (
            []
            if self._service.jobs is None
            else await self._service.jobs.listed(JobCaller(source=self._service.source(request)))
        )
        return {"schedules": [presentation.plain(job) for job in jobs]}

    async def channels(self, _request: web.Request, _given: tool_input.NoInput) -> dict[str, Any]:
        return {"channels": list(self._service.operations.info()["platforms"])}


def _ids(receipt: Receipt) -> dict[str, Any]:
    return {"session_id": receipt.session, "turn_id": receipt.turn}


def _turn(receipt: Receipt, outcome: TurnOutcome | CallAsked) -> dict[str, Any]:
    match outcome:
        case TurnAnswered():
            return {**_ids(receipt), "session_id": outcome.session, "status": "answered", "text": outcome.text}
        case TurnGaveUp(failure=failure):
            kind = failure.kind.value
            return {**_ids(receipt), "session_id": outcome.session, "status": "failed", "failure": kind}
        case CallAsked():
            question = pending.in_words(outcome, receipt.into or receipt.turn, may_approve=may_approve())
            return {**_ids(receipt), "status": "waiting", "id": question_id(outcome), "question": question}
