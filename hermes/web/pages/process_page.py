"""Background processes with their output, and killing one."""

from __future__ import annotations

from typing import Any

from aiohttp import web
from loguru import logger

from hermes.domain.errors import BadInputError
from hermes.domain.process.process_record import ProcessView
from hermes.web.page_kit import LOGIN, PageKit, see

_OUTPUT_BYTES = 64 << 10
_ENDED = 50  # ended processes in the list


class ProcessPage:
    def __init__(self, kit: PageKit) -> None:
        self._kit = kit

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/ui/processes", self.show),
            web.get("/ui/processes/{id}", self.one),
            web.post("/ui/processes/{id}/kill", self.kill),
        ]

    async def show(self, request: web.Request) -> web.Response:
        return await self._kit.page(request, "processes.html", **processes(self._kit))

    async def one(self, request: web.Request) -> web.Response:
        return await self._kit.page(request, "process.html", **await process(self._kit, request.match_info["id"]))

    async def kill(self, request: web.Request) -> web.Response:
        who = request[LOGIN].who
        view = await self._kit.service.processes.kill(request.match_info["id"], f"requested by {who}")
        logger.info("process {}: killed by {}", view.id, who)
        return see(f"/ui/processes/{view.id}")


def processes(kit: PageKit) -> dict[str, Any]:
    views = kit.service.processes.views()
    ended = sorted((each for each in views if each.ended_at is not None), key=lambda each: -(each.ended_at or 0))
    running = [each for each in views if each.ended_at is None]
    return {
        "running": [_shown(kit, each) for each in running],
        "ended": [_shown(kit, each) for each in ended[:_ENDED]],
    }


async def process(kit: PageKit, name: str) -> dict[str, Any]:
    view = next((each for each in kit.service.processes.views() if each.id == name), None)
    if view is None:
        raise BadInputError(f"There is no background process {name[:80]}.", param="id", code="unknown_process")
    chunk = await kit.service.processes.tail(name, _OUTPUT_BYTES)
    return {
        "process": _shown(kit, view),
        "output": chunk.data.decode("utf-8", "replace"),
        "left_out": chunk.offset,
        "id": name,
    }


def _shown(kit: PageKit, view: ProcessView) -> dict[str, Any]:
    return kit.service.shown_process(view)
