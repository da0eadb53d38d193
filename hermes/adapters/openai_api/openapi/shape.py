"""Building blocks of the OpenAPI document."""

from __future__ import annotations

from hermes.adapters.http.presentation import JsonObject
from hermes.domain.ids import SESSION_ID_PATTERN

ID: JsonObject = {"type": "string", "pattern": f"^{SESSION_ID_PATTERN}$"}
TEXT: JsonObject = {"type": "string"}
FILLED: JsonObject = {"type": "string", "minLength": 1}
WHOLE: JsonObject = {"type": "integer"}
COUNT: JsonObject = {"type": "integer", "minimum": 0}
NUMBER: JsonObject = {"type": "number"}
BOOLEAN: JsonObject = {"type": "boolean"}


def operation(name: str, summary: str, schema: str, parameters: list[JsonObject] | None = None) -> JsonObject:
    responses = {"200": answer_of(schema), "4XX": answer_of("Error"), "5XX": answer_of("Error")}
    return {"operationId": name, "summary": summary, "parameters": parameters or [], "responses": responses}


def open_operation(name: str, summary: str, responses: JsonObject) -> JsonObject:
    responses = {**responses, "4XX": answer_of("Error")}
    return {"operationId": name, "summary": summary, "security": [], "responses": responses}


def parameter(name: str, place: str, schema: JsonObject) -> JsonObject:
    return {"name": name, "in": place, "required": place == "path", "schema": schema}


def answer_of(schema: str) -> JsonObject:
    return {"description": schema, "content": json_of(ref(schema))}


def json_of(schema: JsonObject) -> JsonObject:
    return {"application/json": {"schema": schema}}


def ref(schema: str) -> JsonObject:
    return {"$ref": f"#/components/schemas/{schema}"}


def object_of(required: JsonObject, **optional: JsonObject) -> JsonObject:
    return {"type": "object", "properties": {**required, **optional}, "required": list(required)}


def nullable(schema: JsonObject) -> JsonObject:
    return {"anyOf": [schema, {"type": "null"}]}
