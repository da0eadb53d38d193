"""Wrong requests over the wire: each has its own clear error in OpenAI's shape; nothing reaches the front desk."""

from __future__ import annotations

import gzip
import io
import json
from typing import Any

import aiohttp
import pytest

from hermes.adapters.openai_api.server import ApiServer
from tests.adapters.conftest import KEY, ApiHarness, ask, chat, connect, raw

HEAD = f"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n".encode()
JSON_HEAD = HEAD + b"Content-Type: application/json\r\n"


async def post(client: aiohttp.ClientSession, body: bytes, **headers: str) -> tuple[int, Any]:
    headers = {"Content-Type": "application/json"} | headers
    async with client.post("/v1/chat/completions", data=body, headers=headers) as response:
        assert response.content_type == "application/json"
        return response.status, (await response.json())["error"]


def saying(text: str) -> bytes:
    """A request whose message is this JSON string literal."""
    return b'{"model": "hermes", "messages": [{"role": "user", "content": ' + text.encode() + b"}]}"


@pytest.mark.parametrize(
    ("body", "code", "says"),
    [
        (saying('"\\ud800"'), "invalid_json", "surrogate"),
        (saying('"a\\u0000b"'), "invalid_value", "NUL"),
        (saying("1e999"), "invalid_json", "too large"),
        (saying("NaN"), "invalid_json", "NaN"),
        (saying("[" * 5_000 + "]" * 5_000), "invalid_json", "64 levels"),
        (b'{"model": "hermes", "model": "hermes"}', "invalid_json", "twice"),
        (b"\xef\xbb\xbf" + saying('"Hi"'), "invalid_json", "byte order mark"),
        (saying('"\xff"').replace(b"\xc3\xbf", b"\xff"), "invalid_json", "UTF-8"),
        (b"", "invalid_json", "not valid JSON"),
        (b"null", "invalid_value", "must be a JSON object"),
        (json.dumps(ask(model="")).encode(), "invalid_value", "at least 1 character"),
        (json.dumps(ask(n=10**9)).encode(), "invalid_value", "n must be 1"),
        (json.dumps(ask(max_tokens=-1)).encode(), "invalid_value", "max_tokens"),
        (json.dumps(ask(messages=[{"role": "root", "content": "x"}])).encode(), "invalid_value", "role"),
        (json.dumps(ask(messages=ask()["messages"] * 2_001)).encode(), "invalid_value", "1 to 2000"),
    ],
)
async def test_each_wrong_body_is_a_400_that_says_why(
    world: ApiHarness, client: aiohttp.ClientSession, body: bytes, code: str, says: str
) -> None:
    status, error = await post(client, body)
    assert status == 400
    assert error["type"] == "invalid_request_error"
    assert error["code"] == code
    assert says in error["message"]
    assert world.desk.submitted == []


async def test_a_line_of_a_megabyte_is_taken(world: ApiHarness, client: aiohttp.ClientSession) -> None:
    body = io.BytesIO(json.dumps(ask("x" * 2**20)).encode())
    async with client.post(
        "/v1/chat/completions", data=body, headers={"Content-Type": "application/json"}
    ) as response:
        assert response.status == 200
    assert len(world.desk.submitted[0].messages[0]) > 2**20


@pytest.mark.parametrize(
    "content_type",
    ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin-1", "json", ""],
)
async def test_a_wrong_content_type_is_a_415(
    world: ApiHarness, client: aiohttp.ClientSession, content_type: str
) -> None:
    status, error = await post(client, saying('"Hi"'), **{"Content-Type": content_type})
    assert (status, error["code"]) == (415, "unsupported_media_type")
    assert world.desk.submitted == []


async def test_a_content_type_with_a_charset_is_taken(client: aiohttp.ClientSession) -> None:
    headers = {"Content-Type": 'Application/JSON; charset="UTF-8"'}
    async with client.post("/v1/chat/completions", data=saying('"Hi"'), headers=headers) as response:
        assert response.status == 200


async def test_a_compressed_body_is_refused_without_unpacking_it(
    world: ApiHarness, client: aiohttp.ClientSession
) -> None:
    status, error = await post(client, gzip.compress(b" " * 2**24), **{"Content-Encoding": "gzip"})
    assert (status, error["code"]) == (415, "unsupported_media_type")
    assert "uncompressed" in error["message"]
    assert world.desk.submitted == []


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_the_limit_is_a_413(world: ApiHarness, chunked: bool) -> None:
    client = await world.client(await world.api(max_body_bytes=1_000))
    async with client.post(
        "/v1/chat/completions",
        data=b" " * 5_000,
        headers={"Content-Type": "application/json"},
        chunked=chunked or None,
    ) as response:
        assert response.status == 413
        assert (await response.json())["error"]["code"] == "request_too_large"
    assert world.desk.submitted == []


@pytest.mark.parametrize(
    "session_id",
    ["../../etc/passwd", "a/b", ".hidden", "-x", "x" * 129, "a b", "ä", "a%2fb", "%00"],
)
async def test_a_session_id_that_is_not_one_is_a_400(
    world: ApiHarness, client: aiohttp.ClientSession, session_id: str
) -> None:
    status, error = await post(client, saying('"Hi"'), **{"X-Hermes-Session-Id": session_id})
    assert (status, error["code"], error["param"]) == (400, "invalid_session_id", "X-Hermes-Session-Id")
    assert world.desk.submitted == []


async def test_an_empty_session_id_is_not_the_same_as_none(world: ApiHarness, api: ApiServer) -> None:
    body = saying('"Hi"')
    head = JSON_HEAD + b"X-Hermes-Session-Id: \r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    assert b"invalid_session_id" in await raw(api, head + body)
    assert world.desk.submitted == []


@pytest.mark.parametrize("path", ["..%2f..%2fetc%2fpasswd", "%2e%2e", "a%00b", "x" * 129, "a%20b", "%ff"])
@pytest.mark.parametrize("suffix", ["", "/messages"])
async def test_a_path_that_is_no_session_id_is_a_400(api: ApiServer, path: str, suffix: str) -> None:
    request = f"GET /api/sessions/{path}{suffix} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
    answer = await raw(api, request.encode() + b"Connection: close\r\n\r\n")
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 404"))
    assert b'"code":"invalid_session_id"' in answer or b'"code":"not_found"' in answer


@pytest.mark.parametrize("key", ["x" * 256, "é", "a\tb"])
async def test_an_idempotency_key_that_is_not_one_is_a_400(
    world: ApiHarness, client: aiohttp.ClientSession, key: str
) -> None:
    status, error = await post(client, saying('"Hi"'), **{"Idempotency-Key": key})
    assert (status, error["code"]) == (400, "invalid_idempotency_key")
    assert world.desk.submitted == []


async def test_a_flag_that_is_neither_yes_nor_no_is_a_400(world: ApiHarness, client: aiohttp.ClientSession) -> None:
    status, error = await post(client, saying('"Hi"'), **{"X-Hermes-Cancel-On-Disconnect": "maybe"})
    assert (status, error["param"]) == (400, "X-Hermes-Cancel-On-Disconnect")
    assert world.desk.submitted == []


async def test_a_header_given_twice_is_a_400(world: ApiHarness, api: ApiServer) -> None:
    body = saying('"Hi"')
    head = JSON_HEAD + b"X-Hermes-Session-Id: a\r\nX-Hermes-Session-Id: b\r\nConnection: close\r\n"
    answer = await raw(api, head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert b"more than once" in answer
    assert world.desk.submitted == []


async def test_an_unknown_model_is_a_404_that_lists_what_there_is(
    world: ApiHarness, client: aiohttp.ClientSession
) -> None:
    status, body, _ = await chat(client, ask(model="gpt-17"))
    assert (status, body["error"]["code"], body["error"]["param"]) == (404, "model_not_found", "model")
    assert "hermes, toy-1" in body["error"]["message"]
    assert world.desk.submitted == []
    assert (await chat(client, ask(model="toy-1")))[0] == 200


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=201", "limit=x", "limit=-1", "limit=null", "limit=%D9%A1", "limit=99999999999999999999"],
)
async def test_a_limit_that_is_not_one_is_a_400(client: aiohttp.ClientSession, query: str) -> None:
    async with client.get(f"/api/sessions?{query}") as response:
        assert response.status == 400
        assert (await response.json())["error"]["param"] == "limit"


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/v1/chat/completions", 405, "method_not_allowed"),
        ("PUT", "/api/sessions/x", 405, "method_not_allowed"),
        ("GET", "/api/sessions/nobody", 404, "session_not_found"),
        ("GET", "/api/sessions/nobody/messages", 404, "session_not_found"),
        ("DELETE", "/api/sessions/nobody", 404, "session_not_found"),
        ("GET", "/v1/models/gpt-17", 404, "model_not_found"),
    ],
)
async def test_what_is_not_there_has_openais_shape_too(
    client: aiohttp.ClientSession, method: str, path: str, status: int, code: str
) -> None:
    async with client.request(method, path) as response:
        assert response.status == status
        assert (await response.json())["error"]["code"] == code
        assert (response.status == 405) == ("Allow" in response.headers)


# ---------------------------------------------------------------- below JSON


@pytest.mark.parametrize(
    "request_bytes",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"NONSENSE\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nA: b\r\n folded\r\n\r\n",
        JSON_HEAD + b"Content-Length: abc\r\n\r\n{}",
        JSON_HEAD + b"Content-Length: -5\r\n\r\n{}",
        JSON_HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
        JSON_HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        JSON_HEAD + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n",
    ],
    ids=[
        "tls",
        "no http",
        "folded",
        "length abc",
        "length -5",
        "both lengths",
        "two lengths",
        "bad chunk",
    ],
)
async def test_what_is_not_http_is_a_400_and_a_closed_connection(
    world: ApiHarness, api: ApiServer, request_bytes: bytes
) -> None:
    answer = await raw(api, request_bytes)
    assert answer.split(b" ")[1] == b"400"
    body = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert set(body["error"]) == {"message", "type", "param", "code"}
    assert b"Traceback" not in answer
    assert world.desk.submitted == []


async def test_a_chunked_body_is_taken(world: ApiHarness, api: ApiServer) -> None:
    body = saying('"Hi"')
    chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    answer = await raw(api, JSON_HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
    assert answer.startswith(b"HTTP/1.1 200")
    assert len(world.desk.submitted) == 1


async def test_a_body_shorter_than_announced_is_a_408(world: ApiHarness) -> None:
    api = await world.api(body_timeout_s=0.05)
    answer = await raw(api, JSON_HEAD + b"Content-Length: 1000\r\n\r\n{}", until_eof=False)
    assert answer.startswith(b"HTTP/1.1 408")
    assert b"Connection: close" in answer
    assert world.desk.submitted == []


async def test_a_body_longer_than_announced_is_no_request_at_all(world: ApiHarness, api: ApiServer) -> None:
    body = saying('"Hi"')
    answer = await raw(api, JSON_HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body + b"surplus\r\n\r\n")
    assert b" 400 Bad Request" in answer
    assert world.desk.submitted == []


async def test_client_that_disconnects_during_its_body_submits_nothing(world: ApiHarness, api: ApiServer) -> None:
    _, writer = await connect(api)
    writer.write(JSON_HEAD + b"Content-Length: 1000\r\n\r\n{")
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert (await chat(await world.client(api)))[0] == 200
    assert len(world.desk.submitted) == 1


@pytest.mark.parametrize("path", ["/v1/models", "/nowhere"])
async def test_unknown_expectation_is_an_openai_error(client: aiohttp.ClientSession, path: str) -> None:
    async with client.get(path, headers={"Expect": "miracles"}) as response:
        assert response.status == 417
        assert response.content_type == "application/json"
        assert (await response.json())["error"]["code"] == "expectation_failed"
