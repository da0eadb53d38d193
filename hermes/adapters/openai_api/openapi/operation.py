"""One operation of the API, and its part of the OpenAPI document. Schemas are generated from types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Final

from hermes.adapters.http.parameter import (
    CANCEL_HEADER,
    EVENTS_HEADER,
    IDEMPOTENCY_HEADER,
    KEY_HEADER,
    LAST_EVENT_HEADER,
    REPLAY_HEADER,
    SESSION_HEADER,
    TURN_HEADER,
    Flag,
)
from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.http.schema import SessionIdText, components, schema_of
from hermes.adapters.openai_api.openapi.answers import ErrorJson
from hermes.domain.values import dataclass

SUFFIX: Final = "Json"
_TEXT: JsonObject = {"type": "string"}
_HEADERS: Mapping[str, JsonObject] = {
    SESSION_HEADER: schema_of(SessionIdText),
    KEY_HEADER: {**_TEXT, "minLength": 1},
    IDEMPOTENCY_HEADER: {"type": "string", "pattern": "^[!-~]([ -~]{0,253}[!-~])?$"},
    CANCEL_HEADER: schema_of(Flag),
    EVENTS_HEADER: schema_of(Flag),
    LAST_EVENT_HEADER: _TEXT,
}
_ERROR: JsonObject = {"description": "Error", "content": {"application/json": {"schema": schema_of("Error")}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRoute:
    """`query` is the type of the query; `events` is the type of the events of a stream."""

    route: str  # method and path
    id: str
    summary: str
    answer: Any = None
    status: int = 200
    body: Any = None
    body_needed: bool = True
    example: Mapping[str, Any] | None = None
    query: Any = None
    headers: tuple[str, ...] = ()
    events: Any = None
    stream_text: str = ""
    also: Mapping[int, Any] = field(default_factory=dict)  # further answers by status; None: without a body
    errors: tuple[int, ...] = ()  # statuses of errors, besides those that follow from the route's shape
    open: bool = False  # no key is needed
    form: bool = False  # the body is a form
    binary: bool = False  # the answer is the content of a file
    text_type: str = ""  # media type of an answer that is text

    @property
    def path(self) -> str:
        return self.route.split()[1]

    @property
    def method(self) -> str:
        return self.route.split()[0].lower()

    def types(self) -> list[Any]:
        return [kind for kind in (self.answer, self.body, self.events, *self.also.values()) if kind is not None]

    def described(self) -> JsonObject:
        body = {"requestBody": self._body()} if self.body is not None else {}
        security: JsonObject = {"security": []} if self.open else {}
        return {
            "operationId": self.id,
            "summary": self.summary,
            **security,
            "parameters": [*self._path_parameters(), *self._query_parameters(), *map(_header, self.headers)],
            **body,
            "responses": self._responses(),
        }

    def _body(self) -> JsonObject:
        example = {"example": self.example} if self.example is not None else {}
        kind = "multipart/form-data" if self.form else "application/json"
        content = {kind: {"schema": _renamed(schema_of(self.body)), **example}}
        return {"required": self.body_needed, "content": content}

    def _path_parameters(self) -> list[JsonObject]:
        if "{id}" not in self.path:
            return []
        kind = schema_of(SessionIdText) if self.path.startswith("/api/sessions/") else {**_TEXT, "minLength": 1}
        return [{"name": "id", "in": "path", "required": True, "schema": kind}]

    def _query_parameters(self) -> list[JsonObject]:
        if self.query is None:
            return []
        schema = components(self.query)[self.query.__name__]
        needed, fields = schema["required"], schema["properties"]
        return [
            {"name": name, "in": "query", "required": name in needed, "schema": _given(kind)}
            for name, kind in fields.items()
        ]

    def _responses(self) -> JsonObject:
        answers = {self.status: self.answer, **self.also}
        found: JsonObject = {str(status): _answer(kind) for status, kind in answers.items()}
        first = found[str(self.status)]
        if self.binary:
            first["description"] = "The file"
            first["content"] = {"*/*": {}}  # in OpenAPI 3.1 binary data has no schema
        if self.text_type:
            first["description"] = "Text"
            first["content"] = {self.text_type: {"schema": _TEXT}}
        if self.events is not None:
            first.setdefault("content", {})["text/event-stream"] = {"schema": _event(self.events, self.stream_text)}
        if IDEMPOTENCY_HEADER in self.headers:
            first["headers"] = {
                SESSION_HEADER: {"schema": schema_of(SessionIdText), "description": "Current session."},
                TURN_HEADER: {"schema": _TEXT, "description": "Turn of the message."},
                REPLAY_HEADER: {"schema": {"const": "true"}, "description": "The key was used before."},
            }
        errors = [str(status) for status in self._errors() if status not in answers]
        return {**found, **dict.fromkeys(errors, _ERROR), **({} if self.open else {"5XX": _ERROR})}

    def _errors(self) -> list[int]:
        """Return the statuses of errors that this operation answers with, besides 5XX."""
        found = {400, 431, *self.errors}
        found |= set() if self.open else {401, 403, 429}
        found |= set() if self.body is None else {408, 413, 415, 422}
        found |= set() if self.query is None else {422}
        found |= {409} if self.method != "get" and self.path.startswith("/api/sessions") else set()
        found |= set() if "{id}" not in self.path else {404} if self.method == "get" else {404, 409}
        found |= {402, 404, 409, 422} if IDEMPOTENCY_HEADER in self.headers else set()
        return sorted(found)


def paths(operations: Iterable[ApiRoute]) -> JsonObject:
    found: JsonObject = {}
    for each in operations:
        found.setdefault(each.path, {})[each.method] = each.described()
    return found


def schemas(operations: Iterable[ApiRoute]) -> JsonObject:
    kinds = dict.fromkeys(kind for each in operations for kind in each.types() if isinstance(kind, type))
    kinds[ErrorJson] = None
    return {name.removesuffix(SUFFIX): _renamed(schema) for name, schema in components(*kinds).items()}


def _renamed(schema: Any) -> Any:
    """Return a schema whose references and titles have public names."""
    if isinstance(schema, list):
        return [_renamed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: value.removesuffix(SUFFIX) if name in ("$ref", "title") and isinstance(value, str) else _renamed(value)
        for name, value in schema.items()
    }


def _given(schema: JsonObject) -> JsonObject:
    """Return the schema of a parameter that is given: a query has no null."""
    kinds = [each for each in schema.get("anyOf", []) if each.get("type") != "null"]
    return kinds[0] if len(kinds) == 1 else {name: each for name, each in schema.items() if each is not None}


def _header(name: str) -> JsonObject:
    return {"name": name, "in": "header", "required": False, "schema": _HEADERS[name]}


def _answer(kind: Any) -> JsonObject:
    if kind is None:
        return {"description": "Nothing"}
    schema = _renamed(schema_of(kind))
    name = schema["$ref"].rpartition("/")[2] if "$ref" in schema else "JSON"
    return {"description": name, "content": {"application/json": {"schema": schema}}}


def _event(kind: Any, text: str) -> JsonObject:
    """Return the schema of one server-sent event: its data is JSON of the given type, or `[DONE]` at the end."""
    data = {"type": "string", "contentMediaType": "application/json", "contentSchema": _renamed(schema_of(kind))}
    return {
        "type": "object",
        "description": text,
        "properties": {"event": _TEXT, "id": _TEXT, "data": {"anyOf": [{"const": "[DONE]"}, data]}},
        "required": ["data"],
    }
