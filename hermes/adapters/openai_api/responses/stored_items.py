"""Stored output items that a request refers to by their ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hermes.adapters.http.key_scope import may_approve
from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.openai_api.responses.response_items import output_of, question_item, response_of_item
from hermes.adapters.openai_api.turns.turn_request import TurnFields, references_of
from hermes.adapters.openai_api.turns.turn_view import calls_of
from hermes.domain.access.question import in_words
from hermes.domain.errors import UnknownSessionError
from hermes.domain.ids import RESPONSE
from hermes.domain.read.views import TurnRecord
from hermes.domain.records import Asked
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
        response = token.text(RESPONSE)
        items = [*output_of(records, response, over=True), *_questions(records, response)]
        found |= {item["id"]: item for item in items}
    return found


def _questions(records: Sequence[TurnRecord], response: str) -> Iterator[JsonObject]:
    """Yield the questions of a turn as the messages that the client got, answered ones too."""
    calls = calls_of(records)
    for each in records:
        if isinstance(asked := each.record, Asked):
            call = calls.get(asked.call)
            approval = call is None or not call.question
            words = in_words(
                asked.question, asked.choices, each.session, approval=approval, may_approve=may_approve()
            )
            yield question_item(response, asked.call, words)
