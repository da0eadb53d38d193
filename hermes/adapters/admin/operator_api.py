"""Admin API for operators: actors, sessions, live events, the store, stop.

Every route has a description in the table, which GET / returns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from aiohttp import web
from loguru import logger
from msgspec import Meta

from hermes.adapters.admin.automation_api import AutomationApi
from hermes.adapters.admin.chat_api import ChatApi
from hermes.adapters.admin.dashboard_api import DashboardApi
from hermes.adapters.admin.key_api import KeyApi
from hermes.adapters.admin.live_api import LiveApi
from hermes.adapters.admin.mcp_api import McpApi
from hermes.adapters.admin.memory_api import MemoryApi
from hermes.adapters.admin.outbox_api import OutboxApi
from hermes.adapters.admin.profile_api import ProfileApi
from hermes.adapters.admin.skill_api import SkillApi
from hermes.adapters.http import parameter, presentation
from hermes.adapters.http.problem import refusal
from hermes.adapters.http.schema import AbsolutePath, Fields, FilledText
from hermes.adapters.http.service import Service, json_response, remember_session
from hermes.adapters.openai_api.openapi.lazy import operations
from hermes.adapters.openai_api.session_api import MAX_MESSAGES, SessionQuery
from hermes.domain.errors import StorageError
from hermes.domain.ids import Seq, SessionId, TurnId
from hermes.domain.session.state import Session
from hermes.services.commands.wording import own_words

if TYPE_CHECKING:
    pass

Change = Callable[[SessionId, str], Awaitable[Session]]
_TRACED = 20  # messages
_PREVIEW = 200  # characters
_REASON = "requested by the operator"


class ReasonBody(Fields):
    reason: Annotated[FilledText, Meta(max_length=500)] | None = None


class DaemonStopBody(ReasonBody):
    restart: bool | None = None


class TurnStopBody(ReasonBody):
    turn_id: str | None = None


class PruneBody(Fields):
    older_than_s: Annotated[float, Meta(gt=0)]
    dry_run: bool | None = None


class PathBody(Fields):
    path: AbsolutePath


class ImportBody(PathBody):
    trust: bool | None = None


class OperatorApi:
    def __init__(
        self,
        service: Service,
        keys: KeyApi,
        chat: ChatApi | None = None,
        dashboard: DashboardApi | None = None,
        *,
        skills: SkillApi | None = None,
        memory: MemoryApi | None = None,
        profile: ProfileApi | None = None,
        mcp: McpApi | None = None,
    ) -> None:
        self._automation = None if service.events is None else AutomationApi(service, service.events)
        self._service = service
        self._dashboard = dashboard
        self._keys = keys
        self._skills = skills
        self._memory = memory
        self._profile = profile
        self._mcp = mcp
        self._chat = chat

    def routes(self) -> list[web.RouteDef]:
        return [route for route, _ in self._table()]

    def _table(self) -> list[tuple[web.RouteDef, str]]:
        sessions, change = self._service.sessions, self._changing
        return [
            (web.get("/", self.addresses), "This list"),
            (web.get("/info", self.info), "Version, process, uptime, model, address, readiness"),
            (web.get("/actors", self.actors), "All actors: state, mailbox, last error"),
            (web.get("/running", self.running), "Sessions with open work and what they do; running processes"),
            (web.post("/stop", self.stop), 'Stop the daemon; {"reason": ..., "restart": true} may be given'),
            (web.post("/reload", self.reload), "Reload the configuration and apply what can change now"),
            (web.get("/reload", self.pending), "What a reload would change; changes nothing"),
            (
                web.post("/sessions/prune", self.prune),
                'Delete unused conversations; {"older_than_s": 7776000, "dry_run": false}',
            ),
            (
                web.get("/sessions/{id}", self.session),
                "One session, why it is in its state, the end of its messages; ?tail=N",
            ),
            (web.post("/sessions/{id}/stop", self.stop_turn), 'Stop its running turn, or the turn "turn_id"'),
            (web.post("/sessions/{id}/end", change(sessions.end)), "End it; the next message starts a new one"),
            (web.post("/sessions/{id}/suspend", change(sessions.suspend)), "Suspend it"),
            (web.post("/sessions/{id}/resume", change(sessions.resume)), "Resume a suspended session"),
            (web.get("/trace/{id}", self.trace), "Trace a message, or a session's last messages; ?limit=N"),
            (web.get("/grants", self.grants), "Command kinds with a standing grant"),
            (web.post("/grants/{kind}/withdraw", self.withdraw), "Withdraw a standing grant"),
            (web.get("/store", self.store), "Statistics of the store"),
            (web.post("/store/backup", self.backup), 'Copy the store to a new directory; {"path": "/absolute"}'),
            (
                web.post("/store/import", self.take_in),
                'Import an export of sessions; {"path": "/absolute", "trust": false}',
            ),
            (web.get("/store/verify", self.verify), "Verify the store"),
            *OutboxApi(self._service).table(),
            *LiveApi(self._service).table(),
            *self._keys.table(),
            *(self._automation.table() if self._automation is not None else ()),
            *(self._skills.table() if self._skills is not None else ()),
            *(self._memory.table() if self._memory is not None else ()),
            *(self._profile.table() if self._profile is not None else ()),
            *(self._mcp.table() if self._mcp is not None else ()),
            *(self._dashboard.table() if self._dashboard is not None else ()),
            *(self._chat.table() if self._chat is not None else ()),
        ]

    # ------------------------------------------------------------ daemon

    async def addresses(self, _request: web.Request) -> web.Response:
        """List the routes of the admin API and the API, one per line for terminals."""
        listed = [(route.method, route.path, what) for route, what in self._table()]
        # Text pages are routes of the API server only.
        also = await operations()
        listed += [(each.method.upper(), each.path, each.summary) for each in also if not each.text_type]
        lines = [presentation.encode({"method": method, "path": path, "what": what}) for method, path, what in listed]
        return web.Response(body=b"[" + b",\n ".join(lines) + b"]\n", content_type="application/json")

    async def info(self, _request: web.Request) -> web.Response:
        return json_response(dict(self._service.operations.info()))

    async def actors(self, _request: web.Request) -> web.Response:
        return json_response({"actors": [presentation.plain(actor) for actor in self._service.operations.actors()]})

    async def running(self, _request: web.Request) -> web.Response:
        sessions = await self._service.sessions.unfinished()
        shown = [presentation.running(each, await self._preview(each)) for each in sessions]
        processes = [view for view in self._service.processes.views() if view.ended_at is None]
        return json_response(
            {"sessions": shown, "processes": [self._service.shown_process(view) for view in processes]}
        )

    async def _preview(self, session: Session) -> str:
        """Return the first message of a session without a title."""
        if session.preferences.title:
            return ""
        first = await self._service.sessions.messages(session.id, Seq(-1), 1, exact=True)
        said = [own_words(str(each["content"])) for each in presentation.transcript(first) if not each["note"]]
        return said[0][:_PREVIEW] if said else ""

    async def stop(self, request: web.Request) -> web.Response:
        asked = await self._service.read_optional(request, DaemonStopBody)
        reason, restart = asked.reason or _REASON, bool(asked.restart)
        if restart:
            await self._service.operations.request_restart(reason)
        else:
            self._service.operations.request_stop(reason)
        return json_response({"stopping": True, "restart": restart, "reason": reason}, status=202)

    async def reload(self, _request: web.Request) -> web.Response:
        return json_response(dict(await self._service.operations.reload()))

    async def pending(self, _request: web.Request) -> web.Response:
        return json_response(dict(await self._service.operations.reload(dry_run=True)))

    # ------------------------------------------------------------ sessions

    async def session(self, request: web.Request) -> web.Response:
        tail = parameter.integer(request, "tail", low=0, high=MAX_MESSAGES)
        exact = parameter.is_set(parameter.query(request, SessionQuery).exact)
        view = await self._service.view(parameter.session_in_path(request), exact=exact)
        session = remember_session(request, view.session.id)
        limit = 20 if tail is None else tail
        stored = await self._service.sessions.messages(session, None, limit, exact=True) if limit else []
        return json_response({**presentation.view(view), "transcript": presentation.transcript(stored)})

    async def stop_turn(self, request: web.Request) -> web.Response:
        asked = await self._service.read_optional(request, TurnStopBody)
        turn = TurnId(asked.turn_id) if asked.turn_id else None
        session = await self._service.sessions.stop_turn(
            parameter.session_in_path(request), asked.reason or _REASON, turn
        )
        remember_session(request, session.id)
        return json_response({"session": presentation.session(session)})

    async def prune(self, request: web.Request) -> web.Response:
        asked = await self._service.read_optional(request, PruneBody)
        dry_run = bool(asked.dry_run)
        pruned = await self._service.operations.prune(asked.older_than_s, dry_run=dry_run)
        return json_response({"sessions": pruned, "dry_run": dry_run})

    def _changing(self, change: Change) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            asked = await self._service.read_optional(request, ReasonBody)
            session = await change(parameter.session_in_path(request), asked.reason or _REASON)
            remember_session(request, session.id)
            return json_response({"session": presentation.session(session)})

        return handle

    async def trace(self, request: web.Request) -> web.Response:
        limit = parameter.integer(request, "limit", low=1, high=MAX_MESSAGES)
        lines = await self._service.sessions.trace(request.match_info["id"], limit or _TRACED)
        return json_response({"messages": [presentation.trace_line(line) for line in lines]})

    # ------------------------------------------------------------ grants

    async def grants(self, _request: web.Request) -> web.Response:
        return json_response({"grants": await self._service.sessions.granted()})

    async def withdraw(self, request: web.Request) -> web.Response:
        kind = request.match_info["kind"]
        await self._service.sessions.withdraw(kind)
        return json_response({"withdrawn": kind})

    # ------------------------------------------------------------ store

    async def store(self, _request: web.Request) -> web.Response:
        return json_response(presentation.plain(await self._service.operations.store_stats()))

    async def backup(self, request: web.Request) -> web.Response:
        path = (await self._service.read_optional(request, PathBody)).path
        try:
            await self._service.operations.backup(Path(path))
        except StorageError as error:  # about the given path; the store itself works
            logger.warning("backup failed: {}", error)
            raise refusal(409, "backup_refused", str(error)) from error
        return json_response({"path": path})

    async def take_in(self, request: web.Request) -> web.Response:
        asked = await self._service.read_optional(request, ImportBody)
        report = await self._service.operations.take_in(Path(asked.path), trust=bool(asked.trust))
        return json_response(dict(report))

    async def verify(self, _request: web.Request) -> web.Response:
        return json_response({"problems": await self._service.operations.verify()})
