"""Pictures and documents that requests of API clients refer to. Imported with the first of them."""

from __future__ import annotations

import asyncio
import mimetypes
from functools import cached_property

from hermes.app.factories.sandbox import SandboxOpener
from hermes.tools.web.fetch import FetchLimits, Workers, document_text, download
from hermes.tools.web.web_fetch import MAX_WORKERS, WebSettings, guard_for


class InputSource:
    """Downloads files and reads documents, by processes in a sandbox where there is one."""

    def __init__(self, *, max_bytes: int, allow_private_urls: bool, sandbox: SandboxOpener) -> None:
        self._limits = FetchLimits(body_bytes=max_bytes)
        self._settings = WebSettings(allow_private_urls=allow_private_urls)
        self._sandbox = sandbox

    async def download(self, url: str) -> tuple[bytes, str]:
        return await download(url, guard_for(self._settings), self._limits)

    async def read_document(self, data: bytes, media_type: str, name: str) -> str:
        kind = media_type or mimetypes.guess_type(name)[0] or ""
        await asyncio.to_thread(self._sandbox)  # opens it, if this is the first use
        return await document_text(data, kind, max_bytes=self._limits.body_bytes, workers=self._workers)

    @cached_property
    def _workers(self) -> Workers:
        opened = self._sandbox()
        return Workers(MAX_WORKERS, opened.worker_box if opened.works else None)
