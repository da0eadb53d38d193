"""Parser of requests to the sandbox's proxy."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.sandbox.network.proxy_event import Reason
from hermes.sandbox.network.proxy_request import (
    PlainRequest,
    RequestRefusedError,
    Tunnel,
    client_hello,
    parse_request,
    server_name,
)
from tests.sandbox.proxied import hello_for


def plain(head: str) -> PlainRequest:
    request = parse_request(head.replace("\n", "\r\n").encode())
    assert isinstance(request, PlainRequest)
    return request


def reason_of(head: bytes) -> Reason:
    with pytest.raises(RequestRefusedError) as refused:
        parse_request(head)
    return refused.value.reason


def test_connect_names_host_and_port() -> None:
    request = parse_request(b"CONNECT Site.Test.:443 HTTP/1.1\r\nHost: other.test\r\n\r\n")
    assert request == Tunnel(host="site.test", port=443)


def test_plain_request_is_rewritten_for_its_server() -> None:
    request = plain(
        "GET http://Site.test:8080/a/b?c=d#e HTTP/1.1\nHost: other.test\nProxy-Connection: keep-alive\n"
        "Proxy-Authorization: Basic eDp5\nConnection: keep-alive, X-Hop\nX-Hop: 1\nTE: trailers\nUpgrade: h2c\n"
        "HTTP2-Settings: x\nKeep-Alive: 5\nAccept: */*\nX-Kept: a: b\n\n"
    )
    assert (request.host, request.port, request.body_bytes) == ("site.test", 8080, 0)
    assert request.head == (
        b"GET /a/b?c=d HTTP/1.1\r\nHost: site.test:8080\r\nConnection: close\r\nAccept: */*\r\nX-Kept: a: b\r\n\r\n"
    )


def test_default_port_and_empty_path_are_filled_in() -> None:
    request = plain("HEAD HTTP://site.test?q HTTP/1.0\n\n")
    assert request.port == 80
    assert request.head.startswith(b"HEAD /?q HTTP/1.0\r\nHost: site.test\r\n")


def test_connection_header_cannot_remove_the_bodys_length() -> None:
    request = plain("POST http://site.test/ HTTP/1.1\nContent-Length: 5\nConnection: content-length\n\n")
    assert request.body_bytes == 5
    assert b"Content-Length: 5\r\n" in request.head


def test_chunked_body_ends_by_itself() -> None:
    assert plain("POST http://site.test/ HTTP/1.1\nTransfer-Encoding: Chunked\n\n").body_bytes is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("GET / HTTP/1.1", Reason.FORM),
        ("GET https://site.test/ HTTP/1.1", Reason.FORM),
        ("GET ftp://site.test/ HTTP/1.1", Reason.FORM),
        ("GET http:///path HTTP/1.1", Reason.FORM),
        ("GET http://user@site.test/ HTTP/1.1", Reason.FORM),
        ("GET http://site.test@other.test/ HTTP/1.1", Reason.FORM),
        ("GET http://site.test\\@other.test/ HTTP/1.1", Reason.FORM),
        ("OPTIONS * HTTP/1.1", Reason.FORM),
        ("GET http://site.test:0/ HTTP/1.1", Reason.MALFORMED),
        ("GET http://site.test:99999/ HTTP/1.1", Reason.MALFORMED),
        ("GET http://site.test:/ HTTP/1.1", Reason.MALFORMED),
        ("GET http://a:b:c/ HTTP/1.1", Reason.MALFORMED),
        ("GET  http://site.test/ HTTP/1.1", Reason.MALFORMED),
        ("GET http://site.test/ a HTTP/1.1", Reason.MALFORMED),
        ("GET http://site.test/ HTTP/2.0", Reason.MALFORMED),
        ("GET http://site.test/", Reason.MALFORMED),
        ("get http://site.test/ HTTP/1.1", Reason.MALFORMED),
        ("GET http://s\u00eete.test/ HTTP/1.1", Reason.MALFORMED),
        ("CONNECT site.test HTTP/1.1", Reason.MALFORMED),
        ("CONNECT http://site.test:443/ HTTP/1.1", Reason.MALFORMED),
        ("CONNECT user@site.test:443 HTTP/1.1", Reason.MALFORMED),
        ("CONNECT site.test:443/path HTTP/1.1", Reason.MALFORMED),
        ("", Reason.MALFORMED),
    ],
)
def test_other_request_lines_are_refused(line: str, reason: Reason) -> None:
    assert reason_of(line.encode() + b"\r\nHost: site.test\r\n\r\n") is reason


@pytest.mark.parametrize(
    "headers",
    [
        b"Name : value",
        b": value",
        b"no colon",
        b"A: b\r\n folded",
        b"A: b\nB: c",
        b"A: b\rB: c",
        b"A: b\x00c",
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Content-Length: 5\r\nContent-Length: 5",
        b"Content-Length: +5",
        b"Content-Length: -1",
        b"Content-Length: 5, 5",
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: gzip, chunked",
        b"Transfer-Encoding: identity",
    ],
)
def test_ambiguous_headers_are_refused(headers: bytes) -> None:
    assert reason_of(b"POST http://site.test/ HTTP/1.1\r\n" + headers + b"\r\n\r\n") is Reason.MALFORMED


@given(st.binary(max_size=200))
def test_any_head_is_parsed_or_refused(noise: bytes) -> None:
    for head in (noise + b"\r\n\r\n", b"GET http://site.test/ HTTP/1.1\r\n" + noise + b"\r\n\r\n"):
        with suppress(RequestRefusedError):
            parse_request(head)


@pytest.mark.parametrize("name", ["site.test", "a.very-long.name.of.a.site.test", None])
def test_server_name_of_a_client_hello(name: str | None) -> None:
    body = client_hello(hello_for(name))
    assert body is not None
    assert server_name(body) == name


def test_client_hello_is_found_however_it_arrives() -> None:
    whole = hello_for("site.test")
    for size in range(len(whole)):
        assert client_hello(whole[:size]) is None
    body = client_hello(whole)
    assert client_hello(whole + b"more") == body


@pytest.mark.parametrize("size", [1, 3, 4, 5, 40, 200])
def test_server_name_is_found_in_a_hello_split_over_records(size: int) -> None:
    message = hello_for("hidden.test")[5:]
    parts = [message[:size], message[size:]]
    split = b"".join(b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in parts)
    body = client_hello(split)
    assert body is not None
    assert server_name(body) == "hidden.test"


@pytest.mark.parametrize(
    "data",
    [
        b"SSH-2.0-x\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x17\x03\x03\x00\x05hello",
        b"\x16\x02\x00\x00\x05hello",
        b"\x16G",
        b"\x16\x03\x01\x00\x00",
        b"\x16\x03\x01\xff\xff",
        b"\x16\x03\x01\x00\x04\x02\x00\x00\x00",  # a ServerHello
        b"\x16\x03\x01\x00\x04\x01\xff\xff\xff",  # of 16 MB
        b"\x16\x03\x01\x00\x01\x01" * 17,
    ],
)
def test_other_bytes_are_refused_as_client_hello(data: bytes) -> None:
    with pytest.raises(RequestRefusedError) as refused:
        client_hello(data)
    assert refused.value.reason is Reason.NOT_TLS


def hello_with(*extensions: tuple[int, bytes], after: bytes = b"") -> bytes:
    listed = b"".join(kind.to_bytes(2, "big") + len(data).to_bytes(2, "big") + data for kind, data in extensions)
    start = b"\x03\x03" + bytes(32) + b"\x00" + b"\x00\x02\x13\x01" + b"\x01\x00"
    return start + len(listed).to_bytes(2, "big") + listed + after


def sni(*names: bytes, kind: int = 0) -> tuple[int, bytes]:
    entries = b"".join(bytes((kind,)) + len(name).to_bytes(2, "big") + name for name in names)
    return 0, len(entries).to_bytes(2, "big") + entries


def test_built_hello_is_read() -> None:
    assert server_name(hello_with(sni(b"Site.Test"), (16, b"x"))) == "site.test"
    assert server_name(hello_with((16, b"x"))) is None
    assert server_name(hello_with()[:-2]) is None


@pytest.mark.parametrize(
    "hello",
    [
        hello_with(sni(b"a.test"), sni(b"b.test")),
        hello_with(sni(b"a.test", b"b.test")),
        hello_with(sni(b"a.test", kind=1)),
        hello_with(sni()),
        hello_with((0, b"")),
        hello_with(sni("\u00e4.test".encode())),
        hello_with((0, sni(b"a.test")[1] + b"x")),
        hello_with(after=b"x"),
        hello_with(sni(b"a.test"))[:-1],
        b"",
    ],
)
def test_hello_with_an_ambiguous_server_name_is_refused(hello: bytes) -> None:
    with pytest.raises(RequestRefusedError) as refused:
        server_name(hello)
    assert refused.value.reason is Reason.NOT_TLS


@given(st.binary(max_size=300))
def test_any_hello_is_read_or_refused(noise: bytes) -> None:
    for read in (client_hello, server_name):
        try:
            read(noise)
        except RequestRefusedError as refused:
            assert refused.reason is Reason.NOT_TLS  # noqa: PT017 - either outcome will do
