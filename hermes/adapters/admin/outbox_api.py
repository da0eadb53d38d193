"""Admin API for the outbox: messages that are not delivered yet, and dead letters."""

from __future__ import annotations

from aiohttp import web

from hermes.adapters.http import presentation
from hermes.adapters.http.service import Service, json_response
from hermes.ports.outbox import OutboxControl

_WHO = "the operator"


class OutboxApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def table(self) -> list[tuple[web.RouteDef, str]]:
        letters = "Messages that crashed their session or could not be delivered"
        return [
            (web.get("/outbox", self.waiting), "Messages that are not delivered yet"),
            (web.post("/outbox/{id}/drop", self.drop), "Stop sending a message; it becomes a dead letter"),
            (web.get("/dead-letters", self.dead_letters), letters),
            (web.post("/dead-letters/{id}/replay", self.replay), "Retry a dead letter"),
            (web.delete("/dead-letters/{id}", self.delete), "Delete a dead letter"),
        ]

    async def waiting(self, _request: web.Request) -> web.Response:
        waiting = await self._outbox().waiting()
        return json_response({"outbox": [presentation.outbox_message(each) for each in waiting]})

    async def drop(self, request: web.Request) -> web.Response:
        letter = await self._outbox().drop(request.match_info["id"], _WHO)
        return json_response({"dead_letter": presentation.dead_letter(letter)})

    async def dead_letters(self, _request: web.Request) -> web.Response:
        letters = await self._service.sessions.dead_letters()
        return json_response({"dead_letters": [presentation.dead_letter(letter) for letter in letters]})

    async def replay(self, request: web.Request) -> web.Response:
        return json_response(presentation.plain(await self._service.sessions.replay(request.match_info["id"])))

    async def delete(self, request: web.Request) -> web.Response:
        letter = await self._outbox().delete_letter(request.match_info["id"], _WHO)
        return json_response({"deleted": letter.id})

    def _outbox(self) -> OutboxControl:
        assert self._service.outbox is not None, "the daemon has one"
        return self._service.outbox
