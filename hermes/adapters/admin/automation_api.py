"""Admin API for what runs without a person's message: webhooks, hooks and the channel directory."""

from __future__ import annotations

from typing import Annotated, Any

from aiohttp import web
from msgspec import Meta

from hermes.adapters.http.schema import Fields, Text
from hermes.adapters.http.service import Service, json_response
from hermes.domain.event.channel import Channel
from hermes.services.events.event_services import EventServices


class WebhookTestBody(Fields):
    payload: Any = None
    event: Annotated[Text, Meta(max_length=200)] = ""
    run: bool = False


class AutomationApi:
    def __init__(self, service: Service, events: EventServices) -> None:
        self._service = service
        self._events = events

    def table(self) -> list[tuple[web.RouteDef, str]]:
        return [
            (web.get("/webhooks", self.webhooks), "Webhook routes, their problems and counts"),
            (
                web.post("/webhooks/{name}/test", self.test),
                'The prompt that a payload becomes; {"payload": {...}, "event": "push", "run": false}',
            ),
            (web.get("/hooks", self.hooks), "Hooks, their counts and last problems"),
            (web.get("/plugins", self.plugins), "Plugins that were loaded, what they add, and their problems"),
            (web.get("/channels", self.channels), "Channel directory: names and ids of chats; ?platform=P"),
        ]

    async def webhooks(self, _request: web.Request) -> web.Response:
        return json_response({"webhooks": self._events.webhooks.listed()})

    async def test(self, request: web.Request) -> web.Response:
        asked = await self._service.read_optional(request, WebhookTestBody)
        name = request.match_info["name"]
        found = await self._events.webhooks.test(name, asked.payload, asked.event, run=asked.run)
        return json_response(found, status=202 if asked.run else 200)

    async def hooks(self, _request: web.Request) -> web.Response:
        return json_response({"hooks": self._events.hooks.listed(), "status": self._events.hooks.status()})

    async def plugins(self, _request: web.Request) -> web.Response:
        return json_response({"plugins": list(self._events.plugins)})

    async def channels(self, request: web.Request) -> web.Response:
        found = await self._events.channels.channels(request.query.get("platform", ""))
        return json_response({"channels": [_shown(each) for each in found]})


def _shown(channel: Channel) -> dict[str, Any]:
    return {
        "platform": channel.platform,
        "chat": channel.chat,
        "name": channel.name,
        "kind": channel.kind,
        "at": channel.at,
        "target": f"{channel.platform}:{channel.chat}",
    }
