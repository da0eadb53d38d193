"""A fake endpoint for transcription on loopback, in a thread of its own. It hears whatever `hears` says."""

from __future__ import annotations

import asyncio
import threading
from types import TracebackType
from typing import Self

from aiohttp import web


class TranscriptionServer:
    def __init__(self) -> None:
        self.base_url = ""
        self.hears = "hello from a voice"
        self.status = 200
        self.body: bytes | None = None  # instead of an answer
        self.delay_s = 0.0
        self.asked: list[tuple[str, str, bytes, str]] = []  # the model, the file's name and content, and the key
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), name="fake transcription")

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._loop is not None
        assert self._over is not None
        self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._over = asyncio.Event()
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/audio/transcriptions", self._answer)
        runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        self._ready.set()
        await self._over.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        form = await request.post()
        file = form["file"]
        assert isinstance(file, web.FileField)
        key = request.headers.get("Authorization", "")
        with file.file:
            self.asked.append((str(form["model"]), file.filename, file.file.read(), key))
        await asyncio.sleep(self.delay_s)
        if self.body is not None:
            return web.Response(status=self.status, body=self.body)
        return web.json_response({"text": self.hears}, status=self.status)
