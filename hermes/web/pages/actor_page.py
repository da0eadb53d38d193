"""Live map: sessions in memory by their work, the other actors, and the mail that waits for them."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from hermes.domain.read.activity import activity_of
from hermes.domain.read.live import LiveQuery, step_age_s
from hermes.domain.session.state import Phase
from hermes.web.page_kit import PageKit

_SESSIONS = 60


class ActorPage:
    def __init__(self, kit: PageKit) -> None:
        self._kit = kit

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/ui/actors", self.show)]

    async def show(self, request: web.Request) -> web.Response:
        return await self._kit.page(request, "actors.html", **await actor_map(self._kit))


async def actor_map(kit: PageKit) -> dict[str, Any]:
    """Return the parts of the daemon, and the sessions: those that wait for a person and that work first."""
    sample = await kit.service.operations.live(LiveQuery(limit=_SESSIONS))
    now = kit.service.clock()
    sessions = [
        {
            "live": each,
            "doing": activity_of(each.session),
            # Ages of idle sessions would change the page all the time.
            "age_s": step_age_s(each, now) if each.session.phase is Phase.RUNNING else None,
        }
        for each in sample.sessions
    ]
    return {
        "sessions": sessions,
        "count": sample.matching,
        "phases": sample.phases,
        "parts": sorted(sample.actors, key=lambda view: (not view.last_error, -view.mailbox, view.name)),
        "mail": sum(sample.figures.mailbox.values()),
        "waiting_writes": sample.figures.waiting_writes,
    }
