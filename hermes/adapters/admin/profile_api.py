"""Admin API for the person model: what is believed about a person and why, and forgetting."""

from __future__ import annotations

from typing import Annotated

from aiohttp import web
from msgspec import Meta

from hermes.adapters.http.parameter import query
from hermes.adapters.http.schema import Fields, FilledText, Text
from hermes.adapters.http.service import Service, json_response
from hermes.domain.change import ChangeAuthor
from hermes.domain.memory.scope import MemoryScope, parse_scope, resolved
from hermes.domain.profile.belief import plain
from hermes.ports.memory import ChangeOrigin
from hermes.services.profile.profile_service import ProfileService
from hermes.system.random_id import new_marker


class ProfileQuery(Fields):
    person: Annotated[Text, Meta(max_length=200)] = ""


class ForgetBody(Fields):
    belief: Annotated[FilledText, Meta(max_length=100)] | None = None  # None: everything
    person: Annotated[Text, Meta(max_length=200)] = ""


class ProfileApi:
    def __init__(self, service: Service, profile: ProfileService) -> None:
        self._service = service
        self._profile = profile

    def table(self) -> list[tuple[web.RouteDef, str]]:
        return [
            (web.get("/profile", self.show), "What is believed about a person, and why; ?person=PLATFORM:USER"),
            (
                web.post("/profile/forget", self.forget),
                'Forget a belief, or all without one; {"belief": "3", "person": "telegram:12345"}',
            ),
        ]

    async def show(self, request: web.Request) -> web.Response:
        scope = self._scope(query(request, ProfileQuery).person)
        beliefs = await self._profile.beliefs(scope)
        return json_response(
            {
                "provider": self._profile.settings.provider,
                "person": scope.text,
                "beliefs": [plain(each) for each in beliefs],
                "people": list(await self._profile.people()),
            }
        )

    async def forget(self, request: web.Request) -> web.Response:
        body = await self._service.read_optional(request, ForgetBody)
        scope = self._scope(body.person)
        origin = ChangeOrigin(author=ChangeAuthor.PERSON, operation=f"forget:{new_marker()}", by="admin")
        gone = await self._profile.forget(scope, body.belief, origin)
        return json_response({"person": scope.text, "forgotten": [plain(each) for each in gone]})

    def _scope(self, person: str) -> MemoryScope:
        scope = parse_scope(person)
        return resolved(scope, self._profile.settings.owner_accounts) or scope
