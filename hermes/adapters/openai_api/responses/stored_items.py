"""Stored output items that a request refers to by their ids."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.openai_api.responses.input_items import references_in
from hermes.adapters.openai_api.responses.response_items import output_of, response_of_item
from hermes.domain.errors import UnknownSessionError
from hermes.domain.ids import RESPONSE
from hermes.ports.sessions import Sessions


async def stored_items(sessions: Sessions, body: Any) -> Mapping[str, JsonObject]:
    """Return the items that the body's input refers to. Unknown ones are left out."""
    wanted = references_in(body.get("input") if isinstance(body, dict) else None)
    found: dict[str, JsonObject] = {}
    for name in wanted:
        token = None if name in found else response_of_item(name)
        if token is None:
            continue
        try:
            records = await sessions.records(token.session, token.turn)
        except UnknownSessionError:
            continue
        found |= {item["id"]: item for item in output_of(records, token.text(RESPONSE), over=True)}
    return found
