"""Last lines of the daemon's log, filtered by level and text."""

from __future__ import annotations

from aiohttp import web

from hermes.domain.read.log_line import LEVELS, LogFilter
from hermes.web.page_kit import PageKit

_LINES = 300


class LogPage:
    def __init__(self, kit: PageKit) -> None:
        self._kit = kit

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/ui/logs", self.show)]

    async def show(self, request: web.Request) -> web.Response:
        level = request.query.get("level", "INFO")
        level = level if level in LEVELS else "INFO"
        text = request.query.get("q", "").strip()[:200]
        lines = await self._kit.parts.logs.last(LogFilter(level=level), _LINES, text)
        return await self._kit.page(request, "logs.html", lines=lines, level=level, levels=LEVELS, text=text)
