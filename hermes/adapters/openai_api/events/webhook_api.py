"""`POST /hooks/NAME`: events from other programs. The route's signature takes the place of an API key."""

from __future__ import annotations

from aiohttp import web

from hermes.adapters.http import body
from hermes.adapters.http.guard import HOOK_PATH
from hermes.adapters.http.problem import refusal
from hermes.adapters.http.service import Service, json_response
from hermes.domain.event.webhook import WebhookRoute
from hermes.services.events.webhooks import WebhookAnswer, WebhookOutcome

_STATUS = {WebhookOutcome.ACCEPTED: 202, WebhookOutcome.DUPLICATE: 202, WebhookOutcome.IGNORED: 200}


class WebhookApi:
    def __init__(self, service: Service) -> None:
        self._service = service

    def routes(self) -> list[web.RouteDef]:
        return [web.post(f"{HOOK_PATH}{{id}}", self.take)]

    async def take(self, request: web.Request) -> web.Response:
        """Accept an event. The answer comes when the event is on disk."""
        name, events = request.match_info["id"], self._service.events
        webhooks = None if events is None else events.webhooks
        route = None if webhooks is None else webhooks.route(name)
        if webhooks is None or route is None:
            raise refusal(404, "unknown_webhook", "There is no such webhook.")
        content = await self._read(request, route)
        answer = await webhooks.take(name, content, request.headers, request.content_type)
        match answer.outcome:
            case WebhookOutcome.UNKNOWN:
                raise refusal(404, "unknown_webhook", "There is no such webhook.")
            case WebhookOutcome.UNSIGNED:
                raise refusal(401, "invalid_signature", "The signature is missing or wrong.")
            case WebhookOutcome.INVALID:
                raise refusal(400, "invalid_payload", "The body is neither JSON nor a form.")
            case WebhookOutcome.LIMITED:
                message = f"This webhook takes {route.per_minute} events in a minute."
                raise refusal(429, "rate_limited", message, retry_after_s=answer.retry_after_s)
        return json_response(_shown(answer), status=_STATUS[answer.outcome])

    async def _read(self, request: web.Request, route: WebhookRoute) -> bytes:
        limit = min(route.max_body_bytes, self._service.max_body_bytes)
        return await body.read(request, limit_bytes=limit, timeout_s=self._service.body_timeout_s)


def _shown(answer: WebhookAnswer) -> dict[str, object]:
    return {
        "status": answer.outcome.value,
        "delivery": answer.delivery,
        "event": answer.event,
        **({"session": answer.session} if answer.session else {}),
        **({"missing": list(answer.missing)} if answer.missing else {}),
    }
