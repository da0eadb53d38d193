"""First page: state of the daemon, what waits for a person, what runs, and charts. Without a login: the login."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from hermes.adapters.http import presentation
from hermes.domain.turn.usage import Usage
from hermes.ports.metrics import DaemonFigures
from hermes.web.page_kit import LOGIN, PageKit
from hermes.web.pages.login_page import login_page

_RUNNING = 20  # sessions


class OverviewPage:
    def __init__(self, kit: PageKit) -> None:
        self._kit = kit

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/", self.show)]

    async def show(self, request: web.Request) -> web.Response:
        if LOGIN not in request:
            return await login_page(self._kit, request)
        return await self._kit.page(request, "overview.html", **await overview(self._kit))


async def overview(kit: PageKit) -> dict[str, Any]:
    """Return what the live part of the page shows."""
    service = kit.service
    figures = await service.operations.figures()
    open_work = await service.sessions.unfinished()
    sessions = [presentation.running(session, "") for session in open_work]
    waiting = [each for each in sessions if each["doing"] in ("approval", "question")]
    return {
        "figures": figures,
        "used": _used(figures),
        "ended": sum(figures.turns.ended.values()),
        "problem": service.operations.ready(),
        "model": service.operations.model(),
        "waiting": waiting,
        "running": [each for each in sessions if each not in waiting][:_RUNNING],
        "open_work": len(sessions),
    }


def _used(figures: DaemonFigures) -> Usage:
    return sum(figures.turns.used.values(), Usage())
