"""Outbox: messages that are not delivered yet, and dead letters with a retry."""

from __future__ import annotations

from aiohttp import web
from loguru import logger

from hermes.adapters.http import presentation
from hermes.web.page_kit import LOGIN, PageKit, see

_SHOWN = 200


class OutboxPage:
    def __init__(self, kit: PageKit) -> None:
        self._kit = kit

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/ui/outbox", self.show), web.post("/ui/dead-letters/{id}/retry", self.retry)]

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
