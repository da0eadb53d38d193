"""Admin API for chats: pairing, posts, and the working directory of a conversation."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from hermes.adapters.chat.services import ChatServices
from hermes.adapters.http import parameter, presentation
from hermes.adapters.http.service import Service, json_response
from hermes.config.trust import WorkingDirectories
from hermes.domain.access.role import Role
from hermes.domain.errors import BadInputError, UnknownSessionError

_MAX_PATH = 4096
_MAX_TEXT = 100_000
PAIRED_ROLES = (Role.GUEST, Role.USER)  # admins are set in the configuration


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
        body = await self._service.read_fields(request)
        platform, code = self._chat_services.check(_text(body, "platform")), _text(body, "code")
        approved = await self._chat_services.pairing.approve(platform, code, _role(body.get("role", Role.GUEST)))
        return json_response({"approved": presentation.plain(approved)})

    async def set_role(self, request: web.Request) -> web.Response:
        body = await self._service.read_fields(request)
        platform, user, role = _text(body, "platform"), _text(body, "user"), _role(body.get("role"))
        return json_response(
            {"approved": presentation.plain(await self._chat_services.pairing.set_role(platform, user, role))}
        )

    async def revoke(self, request: web.Request) -> web.Response:
        body = await self._service.read_fields(request)
        platform, user = _text(body, "platform"), _text(body, "user")
        left_home = await self._chat_services.revoke(platform, user)
        return json_response({"revoked": {"platform": platform, "user": user, "left_home": left_home}})

    async def post(self, request: web.Request) -> web.Response:
        body = await self._service.read_fields(request)
        name, text = _text(body, "id"), _text(body, "text", most=_MAX_TEXT)
        platform, chat, thread = (_text(body, field, least=0) for field in ("platform", "chat", "thread"))
        place = await self._chat_services.address(platform, chat, thread)
        await self._chat_services.post(name, place, text)
        return json_response({"id": name, "place": presentation.plain(place)}, status=202)

    async def progress(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        return json_response({"id": name, **await self._chat_services.progress(name)})

    async def workdir(self, request: web.Request) -> web.Response:
        """Set the directory of a session that may not exist yet. A conversation that has one keeps it."""
        path = _text(await self._service.read_fields(request), "path", most=_MAX_PATH)
        if not path.startswith("/"):
            raise BadInputError("path must be absolute.", param="path")
        if self._workdirs is None:
            raise web.HTTPNotFound
        session = parameter.session_in_path(request)
        try:
            head = (await self._service.sessions.view(session)).session
            root = head.root or head.id
        except UnknownSessionError:
            root = session
        return json_response({"path": await asyncio.to_thread(self._workdirs.choose, root, path)})


def _role(value: object) -> Role:
    role = next((role for role in PAIRED_ROLES if role == value), None)
    if role is None:
        raise BadInputError(f"role must be one of {', '.join(PAIRED_ROLES)}.", param="role")
    return role


def _text(body: dict[str, Any], field: str, *, least: int = 1, most: int = 200) -> str:
    value = body.get(field, "")
    if not isinstance(value, str) or not least <= len(value) <= most or "\0" in value:
        raise BadInputError(f"{field} must be a text of {least} to {most} characters.", param=field)
    return value
