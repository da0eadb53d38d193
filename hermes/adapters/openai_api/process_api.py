"""Background processes of all conversations: list, details, output, kill."""

from __future__ import annotations

import codecs
from typing import Annotated

from aiohttp import web
from loguru import logger
from msgspec import UNSET, Meta, UnsetType

from hermes.adapters.http.parameter import query
from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.http.schema import Fields
from hermes.adapters.http.service import Service, json_response
from hermes.domain.errors import BadInputError
from hermes.domain.process.process import Chunk

LOG_BYTES = 20_000
MAX_LOG_BYTES = 1_000_000
_CHARACTER_BYTES = 4  # maximum length of a UTF-8 character, so that reading always advances


class LogQuery(Fields):
    offset: Annotated[int, Meta(ge=0, le=2**63 - 1)] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=MAX_LOG_BYTES)] = LOG_BYTES


class ProcessApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/processes", self.all),
            web.get("/api/processes/{id}", self.one),
            web.get("/api/processes/{id}/log", self.log),
            web.post("/api/processes/{id}/kill", self.kill),
        ]

    async def all(self, _request: web.Request) -> web.Response:
        shown = [self._service.shown_process(view) for view in self._service.processes.views()]
        return json_response({"processes": shown})

    async def one(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        view = next((view for view in self._service.processes.views() if view.id == name), None)
        if view is None:
            raise BadInputError(f"There is no background process {name[:80]}.", param="id", code="unknown_process")
        return json_response({"process": self._service.shown_process(view)})

    async def log(self, request: web.Request) -> web.Response:
        """Return the output from an offset, or its end."""
        name = request.match_info["id"]
        asked = query(request, LogQuery)
        processes = self._service.processes
        chunk = await (
            processes.tail(name, asked.limit)
            if asked.offset is UNSET
            else processes.output(name, asked.offset, asked.limit)
        )
        return json_response({"id": name, **_shown(chunk)})

    async def kill(self, request: web.Request) -> web.Response:
        view = await self._service.processes.kill(request.match_info["id"], "requested by the operator")
        logger.info("process {}: killed over the API", view.id)
        return json_response({"process": self._service.shown_process(view)})


def _shown(chunk: Chunk) -> JsonObject:
    """Return a part of the output. An incomplete character at its end is left for the next part."""
    reached = chunk.offset + len(chunk.data)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(chunk.data, final=reached == chunk.total or len(chunk.data) < _CHARACTER_BYTES)
    return {
        "offset": chunk.offset,
        "next_offset": reached - len(decoder.getstate()[0]),
        "total_bytes": chunk.total,
        "kept_from": chunk.kept_from,
        "text": text,
    }
