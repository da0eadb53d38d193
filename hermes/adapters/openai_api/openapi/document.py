"""OpenAPI document, generated from the table of operations and the types of their bodies and answers."""

from __future__ import annotations

from hermes.adapters.http.presentation import JsonObject
from hermes.adapters.openai_api.openapi.operation import paths, schemas
from hermes.adapters.openai_api.openapi.operations import OPERATIONS

_DESCRIPTION = (
    "Long-lived conversations over an OpenAI-compatible API. Input is text, pictures and documents; output is text. "
    "The tools of Hermes run on the server. The client runs the tools of its own `tools`."
)


def document(version: str) -> JsonObject:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hermes",
            "version": version or "0",
            "description": _DESCRIPTION,
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "security": [{"key": []}],
        "paths": paths(OPERATIONS),
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": _schemas(),
        },
    }


def _schemas() -> JsonObject:
    found = schemas(OPERATIONS)
    found["InputMessage"]["required"].remove("type")
    return found
