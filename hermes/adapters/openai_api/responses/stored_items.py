"""Stored output items that a request refers to by their ids."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.openai_api.responses.response_items import output_of, response_of_item
from hermes.adapters.openai_api.turns.turn_request import TurnFields, references_of
from hermes.domain.errors import UnknownSessionError
from hermes.domain.ids import RESPONSE
from hermes.ports.sessions import Sessions


async def stored_items(sessions: Sessions, asked: TurnFields) -> Mapping[str, JsonObject]:
    """Return the items that the input refers to. Unknown ones are left out."""
    found: dict[str, JsonObject] = {}
    for name in references_of(asked):
        token = None if name in found else response_of_item(name)
        if token is None:
            continue
        try:
            records = await sessions.records(token.session, token.turn)
        except UnknownSessionError:
            continue
        found |= {item["id"]: item for item in output_of(records, token.text(RESPONSE), over=True)}
    return found
