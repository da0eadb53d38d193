from __future__ import annotations

import json
import socket
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.models.failure import (
    PROVIDER_TEXT_MAX,
    address_of,
    failure,
    from_error_object,
    from_status,
    from_transport,
    retry_after,
    while_retried,
)
from hermes.domain.turn.turn_failure import FailureCause, FailureKind

K = FailureKind
NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


def body(message: str = "no", **fields: object) -> bytes:
    return json.dumps({"error": {"message": message, **fields}}).encode()


@pytest.mark.parametrize(
    ("status", "reply", "kind"),
    [
        (400, body(), K.BAD_REQUEST),
        (400, body(code="context_length_exceeded"), K.CONTEXT_OVERFLOW),
        (400, body("This model's maximum context length is 4096 tokens"), K.CONTEXT_OVERFLOW),
        (400, body(type="exceed_context_size_error"), K.CONTEXT_OVERFLOW),
        (400, body(code="content_filter"), K.POLICY),
        (401, body(code="invalid_api_key"), K.AUTH),
        (402, body(), K.BILLING),
        (403, b"", K.AUTH),
        (404, body(code="model_not_found"), K.BAD_REQUEST),
        (408, b"", K.TIMEOUT),
        (413, b"", K.CONTEXT_OVERFLOW),
        (429, body(code="rate_limit_exceeded"), K.RATE_LIMIT),
        (429, body(code="insufficient_quota"), K.BILLING),
        (500, b"oops", K.OVERLOADED),
        (502, b"<html>Bad Gateway</html>", K.OVERLOADED),
        (503, b"\xff\xfe", K.OVERLOADED),
        (504, b"", K.TIMEOUT),
        (529, body(type="overloaded_error"), K.OVERLOADED),
        (307, b"", K.BAD_REQUEST),
        (204, b"", K.BAD_REQUEST),
        (500, b"[" * 100_000, K.OVERLOADED),
        (400, b'"just text"', K.BAD_REQUEST),
        (400, b'{"error": "in words"}', K.BAD_REQUEST),
        (400, b'{"error": {"message": 5, "code": {}}}', K.BAD_REQUEST),
    ],
)
def test_a_status_has_its_kind(status: int, reply: bytes, kind: FailureKind) -> None:
    failure = from_status(status, {}, reply, secret="", now=NOW)
    assert failure.kind == kind
    assert str(status) in failure.message
    assert ";" in failure.message  # what happened; what to do


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "slow down", "type": "rate_limit_error"}, K.RATE_LIMIT),
        ({"message": "slow down", "code": 429}, K.RATE_LIMIT),
        ({"message": "slow down", "code": 429, "type": "odd"}, K.RATE_LIMIT),
        ({"message": "who?", "type": "authentication_error"}, K.AUTH),
        ({"message": "long", "code": "context_length_exceeded"}, K.CONTEXT_OVERFLOW),
        ({"message": "bad", "type": "invalid_request_error"}, K.BAD_REQUEST),
        ({"message": "busy", "type": "server_error"}, K.OVERLOADED),
        ("in words", K.OVERLOADED),
        (["odd"], K.OVERLOADED),
        ({"code": 99999}, K.OVERLOADED),
    ],
)
def test_an_error_inside_a_stream_has_its_kind(error: object, kind: FailureKind) -> None:
    assert from_error_object(error, secret="").kind == kind


def test_a_timeout_anywhere_in_the_chain_is_a_timeout() -> None:
    outer = ConnectionError("outer")
    outer.__cause__ = TimeoutError()
    assert from_transport(outer).kind == K.TIMEOUT
    assert from_transport(ConnectionError("refused")).kind == K.CONNECTION


@given(st.text(), st.text("abc-", min_size=3), st.text())
def test_the_key_is_never_part_of_the_text(before: str, secret: str, after: str) -> None:
    key = f"sk-{secret}-canary"
    for found in (
        from_status(401, {}, body(f"{before}{key}{after}"), secret=key, now=NOW),
        from_error_object({"message": f"{before}{key}{after}"}, secret=key),
    ):
        assert key not in found.message


@given(st.text(st.characters(), max_size=2000))
def test_what_the_provider_said_is_short_and_storable(said: str) -> None:
    message = from_status(500, {}, body(said), secret="", now=NOW).message
    assert len(message) < PROVIDER_TEXT_MAX + 100
    assert "\n" not in message
    message.encode()


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:50 GMT"}, 30.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:00:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, NOW) == seconds
    assert from_status(429, headers, b"", secret="", now=NOW).retry_after_s == seconds


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ConnectionRefusedError(111, "refused"), FailureCause.REFUSED),
        (socket.gaierror(-2, "Name or service not known"), FailureCause.UNKNOWN_HOST),
        (ssl.SSLError(1, "WRONG_VERSION_NUMBER"), FailureCause.TLS),
        (TimeoutError(), FailureCause.TIMEOUT),
        (ConnectionResetError(), FailureCause.BROKEN),
        (OSError(113, "No route to host"), FailureCause.UNREACHABLE),
        (RuntimeError("the payload was cut"), FailureCause.BROKEN),
    ],
)
def test_a_connection_that_failed_names_cause_and_address(error: Exception, cause: FailureCause) -> None:
    outer = ValueError("a library's own class")
    outer.__cause__ = error
    failure = from_transport(outer, address="http://127.0.0.1:9/v1")
    assert (failure.cause, failure.address) == (cause, "http://127.0.0.1:9/v1")
    assert "http://127.0.0.1:9/v1" in failure.message


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://bob:secret@example.org:8443/v1?key=hidden#part", "https://example.org:8443/v1"),
        ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1"),
        ("https://example.org/sk-1234/v1", "https://example.org/***/v1"),
    ],
)
def test_an_address_has_no_secrets(url: str, address: str) -> None:
    assert address_of(url, secret="sk-1234") == address


@pytest.mark.parametrize(
    ("address", "hint"),
    [
        ("http://h:1", True),
        ("http://h:1/api/", True),
        ("http://h:1/v1", False),
        ("http://h:1/v1beta/openai", False),
        ("http://h:1/v1/chat/completions", False),
    ],
)
def test_a_404_asks_whether_the_address_should_end_in_v1(address: str, hint: bool) -> None:
    failure = from_status(404, {}, b"", secret="", now=NOW, address=address)
    assert ("should model.base_url end in /v1?" in failure.message) is hint
    assert (failure.cause, failure.status, failure.address) == (FailureCause.STATUS, 404, address)
    other = from_status(500, {}, b"", secret="", now=NOW, address=address)
    assert "/v1?" not in other.message


def test_a_full_path_as_address_is_pointed_out() -> None:
    failure = from_status(404, {}, b"", secret="", now=NOW, address="http://h:1/v1/chat/completions")
    assert "ends before /chat/completions" in failure.message


def test_a_failure_that_hermes_retries_does_not_ask_to_try_again() -> None:
    for kind in (FailureKind.OVERLOADED, FailureKind.TIMEOUT, FailureKind.RATE_LIMIT):
        assert "try again" in failure(kind, "it failed").message
        assert while_retried(failure(kind, "it failed")) == "it failed"
    refused = failure(FailureKind.CONNECTION, "it failed")
    assert while_retried(refused) == refused.message
