"""Memory: the notes of each scope, how full they are, and changes that wait for an approval."""

from __future__ import annotations

import time
from typing import Any

from aiohttp import web
from loguru import logger

from hermes.domain.change import ChangeAuthor
from hermes.domain.memory.scope import MemoryScope, ScopeKind, parse_scope
from hermes.ports.memory import ChangeOrigin
from hermes.web.page_kit import LOGIN, PageKit, field, number_in_path, see

_SCOPES = 100  # on the page


class MemoryPage:
    def __init__(self, kit: PageKit) -> None:
        self._kit = kit

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/ui/memory", self.show),
            web.post("/ui/memory/proposals/{number}/{decision:approve|reject}", self.decide),
        ]

    async def show(self, request: web.Request) -> web.Response:
        memories = self._kit.parts.memories
        owner = memories.scope(MemoryScope(kind=ScopeKind.OWNER))
        scopes = dict.fromkeys(([owner] if owner else []) + await memories.scopes())
        shown = [await self._scope(scope) for scope in [*scopes][:_SCOPES]]
        return await self._kit.page(request, "memory.html", scopes=shown, count=len(scopes))

    async def _scope(self, scope: MemoryScope) -> dict[str, Any]:
        memories = self._kit.parts.memories
        notes = await memories.read(scope)
        return {
            "scope": scope.text,
            "notes": notes,
            "files": {each.target: memories.path(scope, each.target) for each in notes},
            "proposals": await memories.proposals(scope),
        }

    async def decide(self, request: web.Request) -> web.Response:
        """Approve or reject a change that waits."""
        self._kit.check_operator(request)
        number, decision = number_in_path(request, "number"), request.match_info["decision"]
        scope, who = parse_scope(field(request, "scope")), request[LOGIN].who
        origin = ChangeOrigin(author=ChangeAuthor.PERSON, operation=f"{decision}:{time.time_ns()}", by=who)
        decide = self._kit.parts.memories.approve if decision == "approve" else self._kit.parts.memories.reject
        await decide(scope, number, origin)
        logger.info("memory {}: change {}: {} by {}", scope.text, number, decision, who)
        return see("/ui/memory")
