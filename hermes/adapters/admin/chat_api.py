"""Admin API for chats: pairing, posts, and the working directory of a conversation."""

from __future__ import annotations

import asyncio
from typing import Annotated, Literal, TypeAlias

from aiohttp import web
from msgspec import Meta

from hermes.adapters.chat.services import ChatServices
from hermes.adapters.http import parameter, presentation
from hermes.adapters.http.schema import AbsolutePath, Fields, FilledText, Text
from hermes.adapters.http.service import Service, json_response
from hermes.config.trust import WorkingDirectories
from hermes.domain.access.role import Role
from hermes.domain.errors import BadInputError, UnknownSessionError
from hermes.domain.source import Place

PairableRole: TypeAlias = Literal["guest", "user"]  # admins are set in the configuration
Name: TypeAlias = Annotated[FilledText, Meta(max_length=200)]
OptionalName: TypeAlias = Annotated[Text, Meta(max_length=200)] | None


class PairingApproval(Fields):
    platform: Name
    code: Name
    role: PairableRole | None = None


class PairedUser(Fields):
    platform: Name
    user: Name


class PairedRole(PairedUser):
    role: PairableRole


class PostBody(Fields):
    id: Name
    text: Annotated[FilledText, Meta(max_length=100_000)]
    platform: OptionalName = None
    chat: OptionalName = None
    thread: OptionalName = None
    target: OptionalName = None


class WorkdirBody(Fields):
    path: Annotated[AbsolutePath, Meta(max_length=4096)]


class ChatApi:
    def __init__(
        self, service: Service, chat_services: ChatServices, workdirs: WorkingDirectories | None = None
    ) -> None:
        self._service = service
        self._chat_services = chat_services
        self._workdirs = workdirs

    def table(self) -> list[tuple[web.RouteDef, str]]:
        return [
            (web.get("/pairing", self.pairing), "List paired users and pairing requests"),
            (
                web.post("/pairing/approve", self.approve),
                'Approve a pairing request: {"platform": ..., "code": ..., "role": ...}',
            ),
            (
                web.post("/pairing/role", self.set_role),
                'Change the role of a paired user: {"platform": ..., "user": ..., "role": ...}',
            ),
            (web.post("/pairing/revoke", self.revoke), 'Revoke a pairing: {"platform": ..., "user": ...}'),
            (web.post("/posts", self.post), 'Post a "text" to a "chat" or the home channel, without the agent'),
            (web.get("/posts/{id}", self.progress), "Delivery progress of a post"),
            (web.post("/sessions/{id}/workdir", self.workdir), 'Set the directory of a new conversation: "path"'),
        ]

    async def pairing(self, _request: web.Request) -> web.Response:
        book = await self._chat_services.pairing.book()
        pending = [
            {"platform": each.platform, "user": each.user, "name": each.name, "at": each.at} for each in book.pending
        ]
        approved = [presentation.plain(each) for each in book.approved]
        locked = book.locked_until if book.locked_until > self._service.clock() else None
        return json_response({"pending": pending, "approved": approved, "locked_until": locked})

    async def approve(self, request: web.Request) -> web.Response:
        asked = await self._service.read_optional(request, PairingApproval)
        platform = self._chat_services.check(asked.platform)
        approved = await self._chat_services.pairing.approve(platform, asked.code, Role(asked.role or Role.GUEST))
        return json_response({"approved": presentation.plain(approved)})

    async def set_role(self, request: web.Request) -> web.Response:
        asked = await self._service.read_optional(request, PairedRole)
        approved = await self._chat_services.pairing.set_role(asked.platform, asked.user, Role(asked.role))
        return json_response({"approved": presentation.plain(approved)})

    async def revoke(self, request: web.Request) -> web.Response:
        asked = await self._service.read_optional(request, PairedUser)
        left_home = await self._chat_services.revoke(asked.platform, asked.user)
        return json_response({"revoked": {"platform": asked.platform, "user": asked.user, "left_home": left_home}})

    async def post(self, request: web.Request) -> web.Response:
        asked = await self._service.read_optional(request, PostBody)
        place = await self._place(asked)
        await self._chat_services.post(asked.id, place, asked.text)
        return json_response({"id": asked.id, "place": presentation.plain(place)}, status=202)

    async def _place(self, asked: PostBody) -> Place:
        """Return the place of a post: a delivery target leads to one chat."""
        if not asked.target or self._service.events is None:
            return await self._chat_services.address(asked.platform or "", asked.chat or "", asked.thread or "")
        places = await self._service.events.channels.places((asked.target,))
        if len(places) != 1:
            raise BadInputError(f"{asked.target} is not one chat", param="target", code="bad_target")
        return places[0]

    async def progress(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        return json_response({"id": name, **await self._chat_services.progress(name)})

    async def workdir(self, request: web.Request) -> web.Response:
        """Set the directory of a session that may not exist yet. A conversation that has one keeps it."""
        path = (await self._service.read_optional(request, WorkdirBody)).path
        if self._workdirs is None:
            raise web.HTTPNotFound
        session = parameter.session_in_path(request)
        try:
            head = (await self._service.sessions.view(session)).session
            root = head.root or head.id
        except UnknownSessionError:
            root = session
        return json_response({"path": await asyncio.to_thread(self._workdirs.choose, root, path)})
