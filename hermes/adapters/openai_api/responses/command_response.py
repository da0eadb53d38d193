"""Response of a slash command in the text of a request. It is not stored: nothing but the command's effect is."""

from __future__ import annotations

from collections.abc import Sequence

from aiohttp import web

from hermes.adapters.http.event_stream import open_stream
from hermes.adapters.http.service import json_response
from hermes.adapters.openai_api.responses.response_events import ResponseEvents
from hermes.adapters.openai_api.responses.response_object import Answering
from hermes.domain.read.views import TurnRecord


async def send_command_response(
    request: web.Request, answering: Answering, records: Sequence[TurnRecord], *, stream: bool
) -> web.StreamResponse:
    """Send the command's reply, which `records` show as a finished turn."""
    if not stream:
        return json_response(answering.object(list(records)))
    sent = await open_stream(request)
    events = ResponseEvents(answering, own_events=False)
    for event in events.begin(list(records[:1])):
        await sent.send(event, event=event["type"])
    for record in records[1:]:
        for event in events.of_update(record):
            await sent.send(event, event=event["type"])
    return sent.response
