"""Provider of embeddings and audio on loopback. It refuses forms without a file, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_ANSWERS = {
    "/v1/embeddings": ("application/json", b'{"object": "list", "data": [], "model": "e"}'),
    "/v1/audio/speech": ("audio/mpeg", b"ID3 sound"),
    "/v1/audio/transcriptions": ("application/json", b'{"text": "hello"}'),
    "/v1/images/generations": ("application/json", b'{"created": 1, "data": []}'),
}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        kind, answer = _ANSWERS[self.path]
        is_form = self.headers["Content-Type"].startswith("multipart/")
        if is_form and b'name="file"' not in body:
            kind, answer = (
                "application/json",
                b'{"error": {"message": "no file", "type": "x", "param": null, "code": null}}',
            )
        self.send_response(200 if answer is _ANSWERS[self.path][1] else 400)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def provider() -> Iterator[str]:
    """Serve, and yield the configuration of a daemon that uses it."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        address = f"http://127.0.0.1:{server.server_address[1]}/v1"
        yield f'model: {{provider: openai, base_url: "{address}", name: m, api_key_env: FUZZ_KEY}}\n'
        server.shutdown()
        serving.join()
