"""Arguments of the MCP tools. The types are their JSON schemas, too."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from hermes.adapters.http.schema import Fields, FilledText, SessionIdText

MAX_TEXT = 200_000
MAX_WAIT_S = 300.0

Session = Annotated[SessionIdText, Meta(description="id of a conversation; an earlier id leads to its live session")]
Wait = Annotated[float, Meta(ge=0, le=MAX_WAIT_S, description="seconds to wait at most")]
Position = Annotated[int, Meta(ge=0, le=2**62, description="position of the last event you have seen")]


class RpcMessage(Fields):
    """A JSON-RPC message, for the OpenAPI document."""

    jsonrpc: Literal["2.0"]
    method: str
    id: str | int | UnsetType = UNSET
    params: dict[str, Any] | None = None


class NoInput(Fields):
    pass


class ListInput(Fields):
    limit: Annotated[int, Meta(ge=1, le=200)] = 20
    platform: Annotated[str, Meta(max_length=80, description="only of this platform, such as telegram")] = ""
    title: Annotated[str, Meta(max_length=200, description="part of the title")] = ""


class SessionInput(Fields):
    session_id: Session


class ReadInput(Fields):
    session_id: Session
    limit: Annotated[int, Meta(ge=1, le=500)] = 50
    after: Annotated[int, Meta(ge=-1, description="position of a message; only later ones, oldest first")] | None = (
        None
    )


class SendInput(Fields):
    text: Annotated[FilledText, Meta(max_length=MAX_TEXT)]
    session_id: Annotated[SessionIdText, Meta(description="an unused id starts a conversation with it")] | None = None
    wait_s: Wait = 60.0
    idempotency_key: (
        Annotated[str, Meta(min_length=1, max_length=200, description="a repeat with the same key is the same turn")]
        | None
    ) = None


class SearchInput(Fields):
    query: Annotated[FilledText, Meta(max_length=400)]
    limit: Annotated[int, Meta(ge=1, le=100)] = 20


class PollInput(Fields):
    after: Position | None = None
    session_id: Session | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 100


class WaitInput(PollInput):
    timeout_s: Wait = 60.0


class RespondInput(Fields):
    id: Annotated[FilledText, Meta(max_length=80, description="id from permissions_list_open")]
    choice: Literal["once", "session", "always", "deny"] | None = None
    answer: Annotated[FilledText, Meta(max_length=20_000, description="answer to a question")] | None = None
