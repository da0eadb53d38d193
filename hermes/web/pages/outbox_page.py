"""Outbox: messages that are not delivered yet, to drop, and dead letters, to retry or delete."""

from __future__ import annotations

from aiohttp import web
from loguru import logger

from hermes.adapters.http import presentation
from hermes.ports.outbox import OutboxControl
from hermes.web.page_kit import LOGIN, PageKit, see

_SHOWN = 200


class OutboxPage:
    def __init__(self, kit: PageKit) -> None:
        self._kit = kit

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/ui/outbox", self.show),
            web.post("/ui/outbox/{id}/drop", self.drop),
            web.post("/ui/dead-letters/{id}/retry", self.retry),
            web.post("/ui/dead-letters/{id}/delete", self.delete),
        ]

    async def show(self, request: web.Request) -> web.Response:
        waiting = await self._kit.parts.journal.fetch(lambda reader: reader.outbox())
        letters = await self._kit.service.sessions.dead_letters()
        return await self._kit.page(
            request,
            "outbox.html",
            waiting=waiting[:_SHOWN],
            count=len(waiting),
            letters=[presentation.dead_letter(letter) for letter in letters[-_SHOWN:][::-1]],
        )

    async def retry(self, request: web.Request) -> web.Response:
        self._kit.check_operator(request)
        name = request.match_info["id"]
        await self._kit.service.sessions.replay(name)
        logger.info("dead letter {}: retried by {}", name, request[LOGIN].who)
        return see("/ui/outbox")

    async def drop(self, request: web.Request) -> web.Response:
        await self._outbox(request).drop(request.match_info["id"], f"the {request[LOGIN].who}")
        return see("/ui/outbox")

    async def delete(self, request: web.Request) -> web.Response:
        await self._outbox(request).delete_letter(request.match_info["id"], f"the {request[LOGIN].who}")
        return see("/ui/outbox")

    def _outbox(self, request: web.Request) -> OutboxControl:
        self._kit.check_operator(request)
        assert self._kit.service.outbox is not None, "the daemon has one"
        return self._kit.service.outbox
