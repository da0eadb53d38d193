"""Stream of a response to one client: when the response is created, or later, also after a break or a restart."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

from aiohttp import web

from hermes.adapters.http.event_stream import EventStream, open_stream
from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.http.service import Service
from hermes.adapters.openai_api.responses.response_events import ResponseEvents
from hermes.adapters.openai_api.responses.response_object import Answering
from hermes.adapters.openai_api.turns.pending import asked_in
from hermes.adapters.openai_api.turns.shared_turn import SharedTurn
from hermes.adapters.openai_api.turns.turn_follower import TurnFollower, TurnUpdate
from hermes.domain.ids import SessionId, TurnId, TurnToken
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import Asked, MessageReceived
from hermes.domain.turn.submission import Receipt
from hermes.domain.values import dataclass
from hermes.ports.hub import Subscription

_DELTA = "response.output_text.delta"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseStream:
    """`own_events`: the client asked for `hermes.*` events. `after`: number of the last event that it has."""

    service: Service
    answering: Answering
    token: TurnToken
    own_events: bool = False
    after: int = -1

    async def send(self, request: web.Request, follower: TurnFollower) -> web.StreamResponse:
        sessions = self.service.sessions
        records = await sessions.records(self.token.session, self.token.turn)
        with closing(follower):
            stream = await open_stream(request)
            events = ResponseEvents(self.answering, own_events=self.own_events)
            await self._send(stream, events.begin(records))
            while not events.over:
                update = await follower.step()
                await (stream.ping() if update is None else self._send(stream, events.of_update(update)))
                if not self.own_events and _may_wait(update):
                    await self._send_question(stream, events)
        return stream.response

    async def _send_question(self, stream: EventStream, events: ResponseEvents) -> None:
        """End the stream if the session waits for a person, also for a turn that comes first."""
        head = (await self.service.sessions.view(self.token.session)).session
        if (asked := asked_in(head)) is not None:
            await self._send(stream, events.of_question(asked))

    async def _send(self, stream: EventStream, events: Iterable[JsonObject]) -> None:
        for event in events:
            if (left := unseen(event, self.after)) is not None:
                await stream.send(left, event=left["type"])


def unseen(event: JsonObject, after: int) -> JsonObject | None:
    """Return the part of an event that a client does not have yet. The last event is always sent."""
    number = event["sequence_number"]
    if number > after:
        missing = number - after
        if event["type"] == _DELTA and missing < len(event["delta"]):
            return {**event, "delta": event["delta"][-missing:]}
        return event
    return event if "response" in event and event["type"] != "response.created" and number > 1 else None


def follower_of(service: Service, receipt: Receipt, feed: Subscription) -> TurnFollower:
    """Return the follower of an accepted turn. `feed` was opened before it was accepted."""
    heard = None if receipt.duplicate else feed
    if receipt.into is not None:
        heard = service.hub.subscribe(turn=receipt.into)
    return _follower(service, receipt.session, receipt.into or receipt.turn, heard, receipt.into is not None)


def late_follower(service: Service, token: TurnToken) -> TurnFollower:
    """Return the follower of a stored turn, from its beginning."""
    return _follower(service, token.session, token.turn, None, answering=False)


def _follower(
    service: Service, session: SessionId, turn: TurnId, feed: Subscription | None, answering: bool
) -> TurnFollower:
    shared = SharedTurn(service.sessions, session, turn)
    return TurnFollower(shared, service.hub, turn, quiet_s=service.ping_s, feed=feed, answering=answering)


def _may_wait(update: TurnUpdate | None) -> bool:
    """Return True if the session may wait for a person now."""
    return update is None or (isinstance(update, TurnRecord) and isinstance(update.record, MessageReceived | Asked))
