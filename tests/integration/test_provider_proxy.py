"""Embeddings, audio and images pass through the real daemon to the model's provider."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.support.daemon_process import DaemonProcess

pytestmark = pytest.mark.timeout(120)
FORM = "multipart/form-data; boundary=x"
ANSWERS = {
    "/v1/embeddings": (200, "application/json", b'{"data": []}'),
    "/v1/images/generations": (400, "application/json", b'{"error": {"message": "no such size"}}'),
    "/v1/audio/speech": (200, "audio/mpeg", b"ID3 sound"),
    "/v1/audio/transcriptions": (401, "application/json", b'{"error": {"message": "wrong key"}}'),
}


class Provider(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.received: list[tuple[str, str, str, bytes]] = []


class Handler(BaseHTTPRequestHandler):
    server: Provider

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        about = (self.path, self.headers["Authorization"], self.headers["Content-Type"], data)
        self.server.received.append(about)
        status, kind, answer = ANSWERS[self.path]
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as provider:
        serving = threading.Thread(target=provider.serve_forever, daemon=True)
        serving.start()
        yield provider
        provider.shutdown()
        serving.join()


def test_requests_are_passed_on_with_the_providers_key(provider: Provider) -> None:
    address = f"http://127.0.0.1:{provider.server_address[1]}/v1"
    config = f'model: {{provider: openai, base_url: "{address}", name: m, api_key_env: SECRET_KEY}}\n'
    with DaemonProcess(config=config, environ={"SECRET_KEY": "sk-provider"}) as daemon:
        found = daemon.request("POST", "/v1/embeddings", {"model": "e", "input": "hi"})
        assert (found.status, found.body) == (200, b'{"data": []}')
        sound = daemon.request("POST", "/v1/audio/speech", {"input": "hi"})
        assert (sound.headers["Content-Type"], sound.body) == ("audio/mpeg", b"ID3 sound")
        picture = daemon.request("POST", "/v1/images/generations", {"prompt": "a hat", "size": "1x1"})
        assert (picture.status, picture.body) == ANSWERS["/v1/images/generations"][::2]
        refused = daemon.request("POST", "/v1/audio/transcriptions", b"--x--", Content_Type=FORM)
        assert (refused.status, refused.json()["error"]["code"]) == (502, "upstream_auth")
        features = daemon.request("GET", "/v1/capabilities").json()["features"]
        key = next(word for word in daemon.hermes("keys", "create", "ci").stdout.split() if word.startswith("hk_"))
        guarded = daemon.request("POST", "/v1/embeddings", {}, Authorization=f"Bearer {key}")
    assert (features["embeddings"], guarded.status) == (True, 403)
    assert [each[:3] for each in provider.received] == [
        ("/v1/embeddings", "Bearer sk-provider", "application/json"),
        ("/v1/audio/speech", "Bearer sk-provider", "application/json"),
        ("/v1/images/generations", "Bearer sk-provider", "application/json"),
        ("/v1/audio/transcriptions", "Bearer sk-provider", FORM),
    ]


def test_a_reload_changes_the_provider_that_gets_requests(provider: Provider) -> None:
    config = 'model: {{provider: {}, base_url: "http://127.0.0.1:{}/v1", name: m, api_key_env: ""}}\n'
    with DaemonProcess(config=config.format("anthropic", provider.server_address[1])) as daemon:
        before = daemon.request("POST", "/v1/embeddings", {"input": "hi"})
        (daemon.home / "config.yaml").write_text(config.format("custom", provider.server_address[1]))
        assert daemon.hermes("reload").returncode == 0
        after = daemon.request("POST", "/v1/embeddings", {"input": "hi"})
    assert (before.status, before.json()["error"]["code"], after.status) == (501, "not_offered", 200)


def test_wrong_requests_are_refused_before_the_provider_sees_them(provider: Provider) -> None:
    address = f"http://127.0.0.1:{provider.server_address[1]}/v1"
    config = f'model: {{provider: openai, base_url: "{address}", name: m, api_key_env: ""}}\n'
    with DaemonProcess(config=config) as daemon:
        recording = daemon.request("POST", "/v1/audio/transcriptions", b"x", Content_Type="audio/ogg")
        nothing = daemon.request("POST", "/v1/embeddings", {"model": "e"})
        number = daemon.request("POST", "/v1/audio/speech", {"input": 1})
    assert (recording.status, recording.json()["error"]["code"]) == (415, "unsupported_media_type")
    assert [each.status for each in (nothing, number)] == [400, 400]
    assert provider.received == []


def test_provider_that_is_not_there_is_a_502() -> None:
    config = 'model: {provider: openai, base_url: "http://127.0.0.1:1/v1", name: m, api_key_env: ""}\n'
    with DaemonProcess(config=config) as daemon:
        answer = daemon.request("POST", "/v1/embeddings", {"input": "hi"})
    assert (answer.status, answer.json()["error"]["code"]) == (502, "upstream_connection")
