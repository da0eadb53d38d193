"""Who may use the API: the right host, a listed origin, the key."""

from __future__ import annotations

import aiohttp
import pytest

from hermes.adapters.openai_api.server import ApiServer, ApiSettings
from tests.adapters.conftest import KEY, ApiHarness, ask, raw

PAGE = "https://chat.example"


async def get(api: ApiServer, path: str = "/v1/models", **headers: str) -> tuple[int, str, dict[str, str]]:
    async with aiohttp.ClientSession(api.address) as client, client.get(path, headers=headers) as response:
        return response.status, await response.text(), dict(response.headers)


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        KEY,
        f"Basic {KEY}",
        "Bearer",
        "Bearer ",
        "Bearer wrong",
        f"Bearer {KEY}x",
        f"Bearer {KEY[:-1]}",
        f"Bearer x {KEY}",
    ],
)
async def test_without_the_key_nothing_is_answered(api: ApiServer, authorization: str) -> None:
    status, text, headers = await get(api, Authorization=authorization)
    assert status == 401
    assert '"code":"invalid_api_key"' in text
    assert headers["WWW-Authenticate"].startswith("Bearer")
    assert KEY not in text
    assert ("The API key is wrong." in text) == bool(authorization.startswith("Bearer ") and authorization[7:])


@pytest.mark.parametrize("key", ["é".encode(), b"\xe9", b"\xff\xfe", "鍵".encode()])
async def test_a_key_that_is_not_ascii_is_a_wrong_key_and_not_an_error(api: ApiServer, key: bytes) -> None:
    request = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer " + key
    assert (await raw(api, request + b"\r\n\r\n")).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("authorization", [f"Bearer {KEY}", f"bearer {KEY}", f"Bearer  {KEY} "])
async def test_the_key_opens(api: ApiServer, authorization: str) -> None:
    assert (await get(api, Authorization=authorization))[0] == 200


async def test_a_key_beyond_ascii_works(world: ApiHarness) -> None:
    api = await world.api(key="schlüssel")
    request = (
        "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer schlüssel\r\n\r\n"
    )
    assert (await raw(api, request.encode())).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("path", ["/health", "/health/ready", "/openapi.json"])
async def test_a_few_routes_are_open(api: ApiServer, path: str) -> None:
    assert (await get(api, path))[0] == 200


@pytest.mark.parametrize("path", ["/health/", "/healthy", "//health", "/health/../v1/models", "/nothing"])
async def test_what_only_looks_like_an_open_route_is_not(api: ApiServer, path: str) -> None:
    request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
    assert (await raw(api, request)).split(b" ")[1] == b"401"


def test_the_key_is_not_in_the_settings_text() -> None:
    assert KEY not in repr(ApiSettings(host="127.0.0.1", port=0, key=KEY))


# ---------------------------------------------------------------- Host


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LOCALHOST:8642", 200),
        ("localhost.", 200),
        ("127.0.0.1:1", 200),
        ("127.9.9.9", 200),
        ("[::1]:8642", 200),
        ("hermes.lan", 200),
        ("HERMES.lan:80", 200),
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("10.0.0.1", 421),
        ("[::2]", 421),
        ("", 421),
        ("localhost:port", 421),
        ("user@localhost", 421),
    ],
)
async def test_only_its_own_names_reach_the_api(world: ApiHarness, host: str, status: int) -> None:
    api = await world.api(allowed_hosts=("hermes.lan",))
    request = f"GET /v1/models HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {KEY}\r\nConnection: close\r\n\r\n"
    answer = await raw(api, request.encode())
    assert answer.split(b" ")[1] == str(status).encode()
    assert (status == 200) != (b'"code":"host_not_allowed"' in answer)


async def test_a_probe_may_use_any_name_for_the_open_routes(api: ApiServer) -> None:
    assert (await get(api, "/health", Host="10.1.2.3"))[0] == 200


# ---------------------------------------------------------------- Origin


async def test_unlisted_origin_is_refused_even_with_the_key(world: ApiHarness) -> None:
    api = await world.api(cors_origins=(PAGE,))
    for origin in ("https://evil.example", "null", f"{PAGE}.evil.example", PAGE.upper()):
        status, text, headers = await get(api, Authorization=f"Bearer {KEY}", Origin=origin)
        assert (status, '"code":"origin_not_allowed"' in text) == (403, True)
        assert "Access-Control-Allow-Origin" not in headers


async def test_a_listed_page_can_read_the_answer_and_the_session_header(world: ApiHarness) -> None:
    client = await world.client(await world.api(cors_origins=(PAGE,)), Origin=PAGE)
    for body, status in ((ask(), 200), (ask(model="?"), 404)):
        async with client.post("/v1/chat/completions", json=body) as response:
            assert response.status == status
            assert response.headers["Access-Control-Allow-Origin"] == PAGE
            exposed = response.headers["Access-Control-Expose-Headers"].split(", ")
            assert {"X-Hermes-Session-Id", "X-Hermes-Turn-Id", "Retry-After"} <= set(exposed)
            assert response.headers["Vary"] == "Origin"


async def test_a_preflight_needs_no_key_and_names_what_is_allowed(world: ApiHarness) -> None:
    api = await world.api(cors_origins=(PAGE,))
    asks = {
        "Origin": PAGE,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,x-stainless-os, x-evil",
    }
    async with aiohttp.ClientSession(api.address) as client:
        async with client.options("/v1/chat/completions", headers=asks) as response:
            assert response.status == 204
            allowed = response.headers["Access-Control-Allow-Headers"].split(", ")
            assert response.headers["Access-Control-Allow-Methods"] == "GET, POST, PATCH, DELETE"
            assert response.headers["Access-Control-Allow-Origin"] == PAGE
        async with client.options(
            "/v1/chat/completions", headers=asks | {"Origin": "https://evil.example"}
        ) as response:
            assert response.status == 403
    wanted = (
        "Authorization Content-Type Idempotency-Key X-Hermes-Session-Id X-Hermes-Cancel-On-Disconnect "
        "X-Hermes-Events X-Hermes-Session-Key Last-Event-ID x-stainless-os"
    )
    assert allowed == wanted.split()


async def test_the_listed_origins_can_change_while_it_runs(api: ApiServer) -> None:
    page = {"Authorization": f"Bearer {KEY}", "Origin": PAGE}
    assert (await get(api, **page))[0] == 403
    api.set_cors_origins([PAGE])
    assert (await get(api, **page))[0] == 200
    api.set_cors_origins([])
    assert (await get(api, **page))[0] == 403


async def test_every_answer_carries_the_safety_headers(api: ApiServer) -> None:
    for path in ("/health", "/v1/models"):
        _, _, headers = await get(api, path)
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["Server"] == "hermes"
