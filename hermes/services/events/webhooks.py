"""Webhook service: checks an event from another program, stores it once, and starts its run.

The event is accepted when its id and the duty to run it are on disk, in one transaction. The same id again, also
after a crash, starts nothing.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from loguru import logger

from hermes.config.tool_choice import tools_of
from hermes.domain.child.child import ChildDuty, Purpose, child_id
from hermes.domain.errors import BadInputError, ConfigError
from hermes.domain.event import webhook
from hermes.domain.event.webhook import WebhookRoute
from hermes.domain.ids import InboundKey, SessionId
from hermes.domain.source import Source
from hermes.domain.turn.submission import Seen
from hermes.domain.values import dataclass
from hermes.ports.children import ChildRequests
from hermes.ports.given import Clock
from hermes.services.events.event_run import EventRun
from hermes.system.crash_point import reach

_MINUTE_S: Final = 60.0


class WebhookOutcome(StrEnum):
    ACCEPTED = "accepted"
    DUPLICATE = "duplicate"
    IGNORED = "ignored"  # its event is not one of the route's
    UNSIGNED = "unsigned"
    LIMITED = "limited"
    INVALID = "invalid"  # the payload cannot be read
    UNKNOWN = "unknown"  # there is no such route, or it is disabled


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookAnswer:
    outcome: WebhookOutcome
    delivery: str = ""
    event: str = ""
    session: SessionId | None = None
    retry_after_s: int = 0
    problem: str = ""
    missing: tuple[str, ...] = ()  # fields of the template that the payload lacks


class WebhookService:
    def __init__(
        self,
        routes: tuple[WebhookRoute, ...],
        *,
        secret: Callable[[WebhookRoute], bytes],
        children: ChildRequests,
        clock: Clock,
        marker: Callable[[], str],
    ) -> None:
        self._routes = {route.name: route for route in routes if route.enabled}
        self._secrets: dict[str, bytes] = {}
        self.problems: dict[str, str] = {}  # by route: it refuses every request
        self._children = children
        self._clock = clock
        self._marker = marker
        self._recent: dict[str, deque[float]] = {}  # times of the accepted events of the last minute
        self.counts: Counter[tuple[str, WebhookOutcome]] = Counter()
        for route in self._routes.values():
            try:
                self._secrets[route.name] = secret(route)
            except ConfigError as error:
                self.problems[route.name] = str(error)
                logger.error("webhook {}: refuses all requests: {}", route.name, error)

    def route(self, name: str) -> WebhookRoute | None:
        """Return an enabled route whose secret is known."""
        return self._routes.get(name) if name not in self.problems else None

    def listed(self) -> list[dict[str, Any]]:
        """Return the routes for people, without secrets."""
        return [
            {
                "name": route.name,
                "path": f"/hooks/{route.name}",
                "signing": route.signing.value,
                "events": list(route.events),
                "deliver": list(route.deliver),
                "role": route.role.value,
                "toolset": list(route.toolset),
                "model": route.model,
                "per_minute": route.per_minute,
                "problem": self.problems.get(route.name, ""),
                "counts": {
                    outcome.value: count for (name, outcome), count in self.counts.items() if name == route.name
                },
            }
            for route in self._routes.values()
        ]

    async def take(
        self, name: str, body: bytes, headers: Mapping[str, str], content_type: str = "application/json"
    ) -> WebhookAnswer:
        """Accept an event. Raises errors of the store, after which the sender tries again."""
        answer = await self._take(name, body, headers, content_type)
        known = name if name in self._routes else ""
        self.counts[known, answer.outcome] += 1
        if answer.outcome is not WebhookOutcome.UNKNOWN:
            logger.info("webhook {}: delivery {} {}", name, answer.delivery or "-", answer.outcome)
        return answer

    async def _take(self, name: str, body: bytes, headers: Mapping[str, str], content_type: str) -> WebhookAnswer:
        route = self.route(name)
        if route is None:
            return WebhookAnswer(outcome=WebhookOutcome.UNKNOWN)
        if not webhook.is_signed(route, self._secrets[name], body, headers):
            return WebhookAnswer(outcome=WebhookOutcome.UNSIGNED)
        delivery = webhook.delivery_id(route, headers, body)
        try:
            payload = webhook.read_payload(body, content_type)
        except (ValueError, RecursionError):
            return WebhookAnswer(outcome=WebhookOutcome.INVALID, delivery=delivery)
        event = webhook.event_of(headers, payload)
        if not webhook.takes_event(route, event) or (event == "ping" and event not in route.events):
            return WebhookAnswer(outcome=WebhookOutcome.IGNORED, delivery=delivery, event=event)
        if wait_s := self._wait_s(route):
            return WebhookAnswer(outcome=WebhookOutcome.LIMITED, delivery=delivery, retry_after_s=wait_s)
        return await self._accept(route, payload, event=event, delivery=delivery)

    async def _accept(self, route: WebhookRoute, payload: Any, *, event: str, delivery: str) -> WebhookAnswer:
        now = self._clock()
        duty = self._duty(route, payload, event=event, delivery=delivery, now=now)
        seen = Seen(key=InboundKey(duty.key), session=duty.child, turn=duty.first_turn, fingerprint=b"", at=now)
        reach("webhook: received")
        is_new = await self._children.request(duty, seen=seen)
        reach("webhook: accepted")
        missing = tuple(webhook.missing_fields(route, payload))
        if not is_new:
            return WebhookAnswer(outcome=WebhookOutcome.DUPLICATE, delivery=delivery, event=event)
        self._recent.setdefault(route.name, deque()).append(now)
        return WebhookAnswer(
            outcome=WebhookOutcome.ACCEPTED, delivery=delivery, event=event, session=duty.child, missing=missing
        )

    def _duty(self, route: WebhookRoute, payload: Any, *, event: str, delivery: str, now: float) -> ChildDuty:
        key = f"{webhook.PLATFORM}:{route.name}:{delivery}"
        run = EventRun(
            title=f"The webhook {route.name}",
            prompt=webhook.render(route, payload, event=event, delivery=delivery, marker=self._marker()),
            deliver=route.deliver,
            tools=tuple(dict.fromkeys(tool for name in route.toolset for tool in tools_of(name))),
            model=route.model,
            max_steps=route.max_steps,
            max_tokens=route.max_tokens,
            max_usd=route.max_usd,
        )
        return ChildDuty(
            key=key,
            child=child_id(key, now),
            purpose=Purpose.WEBHOOK,
            source=Source(platform=webhook.PLATFORM, user=route.name, automatic=True, role=route.role),
            work=run.encoded(),
        )

    def _wait_s(self, route: WebhookRoute) -> int:
        """Return after how many seconds the route takes another event; 0: now."""
        now, recent = self._clock(), self._recent.setdefault(route.name, deque())
        while recent and recent[0] <= now - _MINUTE_S:
            recent.popleft()
        return max(1, int(recent[0] + _MINUTE_S - now)) if len(recent) >= route.per_minute else 0

    # ------------------------------------------------------------ for operators

    async def test(self, name: str, payload: Any, event: str, *, run: bool) -> dict[str, Any]:
        """Return the prompt that a payload becomes. With `run`, accept it like a signed request."""
        route = self._routes.get(name)
        if route is None:
            known = ", ".join(self._routes) or "none"
            raise BadInputError(f"there is no webhook {name}; configured: {known}", code="unknown_webhook")
        delivery = f"test-{self._marker()}"
        shown = {
            "route": name,
            "prompt": webhook.render(route, payload, event=event, delivery=delivery, marker=self._marker()),
            "missing": webhook.missing_fields(route, payload),
            "takes": webhook.takes_event(route, event),
        }
        if not run:
            return shown
        answer = await self._accept(route, payload, event=event, delivery=delivery)
        return {**shown, "session": answer.session, "delivery": delivery, "outcome": answer.outcome.value}
