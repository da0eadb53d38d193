"""Trace of a message, or of a session's last messages, as a waterfall."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from hermes.domain.errors import BadInputError, UnknownSessionError
from hermes.domain.read.trace import TraceLine
from hermes.web.page_kit import PageKit

_TRACED = 20  # messages
_MAX_ID = 300
_MIN_WIDTH = 0.4  # percent: a step without length is still visible


class TracePage:
    def __init__(self, kit: PageKit) -> None:
        self._kit = kit

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/ui/trace", self.show)]

    async def show(self, request: web.Request) -> web.Response:
        name = request.query.get("id", "").strip()[:_MAX_ID]
        lines, problem = [], ""
        if name:
            try:
                lines = await self._kit.service.sessions.trace(name, _TRACED)
            except (UnknownSessionError, BadInputError) as error:
                problem = str(error)
        traces = [waterfall(line, self._kit.service.clock()) for line in reversed(lines)]
        return await self._kit.page(request, "trace.html", name=name, traces=traces, problem=problem)


def waterfall(line: TraceLine, now: float) -> dict[str, Any]:
    """Return a trace with the place of each step, in percent of the whole."""
    begins = min((line.at, *(step.at for step in line.steps)))
    ends = max((begins, *(step.at + (step.took_s or 0.0) for step in line.steps)))
    if line.took_s is not None:
        ends = max(ends, line.at + line.took_s)
    whole = max(ends - begins, 1e-6)
    bars = []
    for step in line.steps:
        start = 100 * (step.at - begins) / whole
        width = max(_MIN_WIDTH, 100 * (step.took_s or 0.0) / whole)
        x = min(start, 100 - _MIN_WIDTH)
        bars.append(
            {"step": step, "x": round(x, 2), "width": round(min(width, 100 - x), 2), "after_s": step.at - begins}
        )
    return {"line": line, "bars": bars, "whole_s": ends - begins, "age_s": now - line.at}
