"""A fake endpoint for transcription on loopback, in a thread of its own. It hears whatever `hears` says."""

from __future__ import annotations

import asyncio
import threading

from aiohttp import BodyPartReader, web

from tests.support.threaded_server import ThreadedServer, listening


class TranscriptionServer(ThreadedServer):
    def __init__(self) -> None:
        super().__init__("fake transcription")
        self.base_url = ""
        self.hears = "hello from a voice"
        self.status = 200
        self.body: bytes | None = None  # instead of an answer
        self.delay_s = 0.0
        self.goes_on = threading.Event()  # not set: answers wait for it
        self.goes_on.set()
        self.asked: list[tuple[str, str, bytes, str]] = []  # the model, the file's name and content, and the key

    async def _serve(self) -> None:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/audio/transcriptions", self._answer)
        async with listening(app) as address:
            self.base_url = f"{address}/v1"
            await self._until_over()

    async def _answer(self, request: web.Request) -> web.Response:
        fields: dict[str, bytes] = {}
        filename = ""
        async for part in await request.multipart():  # in memory: an aborted request leaves no temporary file
            assert isinstance(part, BodyPartReader)
            fields[part.name or ""] = bytes(await part.read())
            filename = part.filename or filename
        key = request.headers.get("Authorization", "")
        self.asked.append((fields["model"].decode(), filename, fields["file"], key))
        await asyncio.sleep(self.delay_s)
        while not self.goes_on.is_set():  # noqa: ASYNC110 - it is set in another thread
            await asyncio.sleep(0.01)
        if self.body is not None:
            return web.Response(status=self.status, body=self.body)
        return web.json_response({"text": self.hears}, status=self.status)
