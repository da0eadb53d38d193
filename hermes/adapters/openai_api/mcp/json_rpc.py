"""JSON-RPC messages of the Model Context Protocol, as far as a server with tools alone needs them. Pure."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from hermes.domain.values import dataclass

VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")  # that `initialize` negotiates, newest first
_NAME_CHARS = 100


class RpcCode(IntEnum):
    PARSE = -32700
    INVALID_REQUEST = -32600
    NO_METHOD = -32601
    INVALID_PARAMS = -32602
    INTERNAL = -32603


class RpcError(Exception):
    """A request that cannot be answered with a result."""

    def __init__(self, code: RpcCode, text: str) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcRequest:
    method: str
    params: dict[str, Any]
    id: str | int | None = None  # None: a notification, or an answer to a request of ours; nothing is returned


def read_request(value: object) -> RpcRequest:
    """Return a request or notification. Raises RpcError."""
    if isinstance(value, list):
        raise RpcError(RpcCode.INVALID_REQUEST, "batches are not supported; send one message")
    if not isinstance(value, dict) or value.get("jsonrpc") != "2.0":
        raise RpcError(RpcCode.INVALID_REQUEST, 'a message is a JSON object with "jsonrpc": "2.0"')
    method, params, name = value.get("method"), value.get("params"), value.get("id")
    if not isinstance(method, str) or (params is not None and not isinstance(params, dict)):
        raise RpcError(RpcCode.INVALID_REQUEST, "method must be text, and params an object")
    if "id" in value and (isinstance(name, bool) or not isinstance(name, str | int)):
        raise RpcError(RpcCode.INVALID_REQUEST, "id must be text or a whole number")
    return RpcRequest(method=method, params=params or {}, id=name)


def id_of(value: object) -> str | int | None:
    """Return the id of a message that may be wrong otherwise."""
    name = value.get("id") if isinstance(value, dict) else None
    return name if isinstance(name, str | int) and not isinstance(name, bool) else None


def result(name: str | int | None, value: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": name, "result": value}


def failure(name: str | int | None, error: RpcError) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": name, "error": {"code": int(error.code), "message": str(error)}}


def initialized(params: dict[str, Any], *, version: str, instructions: str) -> dict[str, Any]:
    """Return the result of `initialize`: the client's protocol version if we have it, else our newest."""
    asked = params.get("protocolVersion")
    return {
        "protocolVersion": asked if asked in VERSIONS else VERSIONS[0],
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": "hermes", "title": "Hermes", "version": version},
        "instructions": instructions,
    }


def shown_name(name: object) -> str:
    return repr(name if isinstance(name, str) else "")[:_NAME_CHARS]
