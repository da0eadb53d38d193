"""What an operator can do on chat platforms, over the admin socket: pairing, and posting without the agent."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from hermes.adapters import presentation
from hermes.adapters.chat.office import ChatOffice
from hermes.adapters.openai_api.service import Service, json_response
from hermes.errors import BadInputError
from hermes.role import Role

_MAX_TEXT = 100_000
PAIRED_ROLES = (Role.GUEST, Role.USER)  # admins are named in the configuration


class ChatApi:
    def __init__(self, service: Service, office: ChatOffice) -> None:
        self._service = service
        self._office = office

    def table(self) -> list[tuple[web.RouteDef, str]]:
        return [
            (web.get("/pairing", self.pairing), "Who was let in by pairing, and who asks to be"),
            (
                web.post("/pairing/approve", self.approve),
                'Let somebody in: {"platform": ..., "code": ..., "role": ...}',
            ),
            (web.post("/pairing/role", self.set_role), 'Change a role: {"platform": ..., "user": ..., "role": ...}'),
            (web.post("/pairing/revoke", self.revoke), 'And out again: {"platform": ..., "user": ...}'),
            (web.post("/posts", self.post), 'Say a "text" in a "chat", or in the home channel, without the agent'),
            (web.get("/posts/{id}", self.progress), "Whether a post has arrived"),
        ]

    async def pairing(self, _request: web.Request) -> web.Response:
        book = await self._office.pairing.book()
        pending = [
            {"platform": each.platform, "user": each.user, "name": each.name, "at": each.at} for each in book.pending
        ]
        approved = [presentation.plain(each) for each in book.approved]
        locked = book.locked_until if book.locked_until > self._service.clock() else None
        return json_response({"pending": pending, "approved": approved, "locked_until": locked})

    async def approve(self, request: web.Request) -> web.Response:
        body = await self._service.read_fields(request)
        platform, code = self._office.check(_text(body, "platform")), _text(body, "code")
        approved = await self._office.pairing.approve(platform, code, _role(body.get("role", Role.GUEST)))
        return json_response({"approved": presentation.plain(approved)})

    async def set_role(self, request: web.Request) -> web.Response:
        body = await self._service.read_fields(request)
        platform, user, role = _text(body, "platform"), _text(body, "user"), _role(body.get("role"))
        return json_response(
            {"approved": presentation.plain(await self._office.pairing.set_role(platform, user, role))}
        )

    async def revoke(self, request: web.Request) -> web.Response:
        body = await self._service.read_fields(request)
        platform, user = _text(body, "platform"), _text(body, "user")
        left_home = await self._office.revoke(platform, user)
        return json_response({"revoked": {"platform": platform, "user": user, "left_home": left_home}})

    async def post(self, request: web.Request) -> web.Response:
        body = await self._service.read_fields(request)
        name, text = _text(body, "id"), _text(body, "text", most=_MAX_TEXT)
        platform, chat, thread = (_text(body, field, least=0) for field in ("platform", "chat", "thread"))
        place = await self._office.address(platform, chat, thread)
        await self._office.post(name, place, text)
        return json_response({"id": name, "place": presentation.plain(place)}, status=202)

    async def progress(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        return json_response({"id": name, **await self._office.progress(name)})


def _role(value: object) -> Role:
    role = next((role for role in PAIRED_ROLES if role == value), None)
    if role is None:
        raise BadInputError(f"role is one of {', '.join(PAIRED_ROLES)}.", param="role")
    return role


def _text(body: dict[str, Any], field: str, *, least: int = 1, most: int = 200) -> str:
    value = body.get(field, "")
    if not isinstance(value, str) or not least <= len(value) <= most or "\0" in value:
        raise BadInputError(f"{field} is a text of {least} to {most} characters.", param=field)
    return value
