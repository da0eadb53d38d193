"""Events of the sandbox's proxy, and the answer that a refused client reads. Pure."""

from __future__ import annotations

from enum import StrEnum

from hermes.domain.values import dataclass


class EventKind(StrEnum):
    ALLOWED = "allowed"  # a connection was let through; reported when it ends
    REFUSED = "refused"
    ASKED = "asked"  # the owner is asked about a host


class Reason(StrEnum):
    """Cause of a refusal."""

    NOT_LISTED = "not_listed"
    NOT_A_NAME = "not_a_name"
    NOT_PUBLIC = "not_public"
    PORT = "port"
    FORM = "form"  # neither CONNECT nor an absolute http:// address
    NOT_TLS = "not_tls"
    OTHER_SERVER_NAME = "other_server_name"
    MALFORMED = "malformed"
    HEAD_TOO_LARGE = "head_too_large"
    TOO_SLOW = "too_slow"
    UNRESOLVED = "unresolved"
    UNREACHABLE = "unreachable"
    TOO_MANY_CLIENTS = "too_many_clients"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyEvent:
    kind: EventKind
    host: str = ""  # in normal form; empty: the request named none
    port: int = 0
    reason: Reason | None = None  # of a refusal
    bytes_sent: int = 0  # by the sandbox
    bytes_received: int = 0


_STATUS = {
    Reason.MALFORMED: 400,
    Reason.TOO_SLOW: 408,
    Reason.HEAD_TOO_LARGE: 431,
    Reason.UNRESOLVED: 502,
    Reason.UNREACHABLE: 502,
    Reason.TOO_MANY_CLIENTS: 503,
}
_SENTENCES = {
    Reason.NOT_LISTED: ("{host} is not on the list of allowed hosts (sandbox.allowed_hosts); the owner can allow it"),
    Reason.NOT_A_NAME: "{host} is not the name of a host; connections to addresses are not allowed",
    Reason.NOT_PUBLIC: "{host} has an address that is not public",
    Reason.PORT: "connections to port {port} are not allowed",
    Reason.FORM: "the proxy takes CONNECT and http:// addresses without a password only",
    Reason.NOT_TLS: "CONNECT is for TLS only",
    Reason.OTHER_SERVER_NAME: "the TLS server name is not {host}",
    Reason.MALFORMED: "the request cannot be read",
    Reason.HEAD_TOO_LARGE: "the request's header is too large",
    Reason.TOO_SLOW: "the request took too long to arrive",
    Reason.UNRESOLVED: "{host} cannot be resolved",
    Reason.UNREACHABLE: "{host} does not answer on port {port}",
    Reason.TOO_MANY_CLIENTS: "too many connections at the same time",
}


def sentence(reason: Reason, host: str = "", port: int = 0) -> str:
    return "sandbox: " + _SENTENCES[reason].format(host=host or "the host", port=port)


def refusal_answer(reason: Reason, host: str = "", port: int = 0) -> bytes:
    """HTTP response for a refused client.

    The sentence is also the reason phrase: when CONNECT fails, many clients show only that.
    """
    text = sentence(reason, host, port)
    head = (
        f"HTTP/1.1 {_STATUS.get(reason, 403)} {text}",
        "Content-Type: text/plain; charset=utf-8",
        f"Content-Length: {len(text) + 1}",
        "Connection: close",
    )
    return "\r\n".join((*head, "", f"{text}\n")).encode("ascii")
