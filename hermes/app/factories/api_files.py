"""Factory of the files of API clients, and of the pictures and documents in their requests."""

from __future__ import annotations

import asyncio
import mimetypes
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import cache
from typing import TYPE_CHECKING, BinaryIO

from hermes.app.factories.media import media_store
from hermes.app.factories.sandbox import SandboxOpener
from hermes.config.home import Home
from hermes.config.settings import Config
from hermes.media.file_shelf import FileShelf
from hermes.media.input_part import InputParts
from hermes.system import clock as wall_clock

if TYPE_CHECKING:
    from hermes.app.factories.input_source import InputSource

_PIECE_BYTES = 64 << 10


def make_file_shelf(config: Config, home: Home) -> FileShelf:
    return FileShelf(media_store(config, home), clock=wall_clock.wall)


def shelving(config: Config, home: Home) -> Callable[[str, str, BinaryIO], Awaitable[str]]:
    """Return the function that stores a file of the agent for download by an API client."""
    shelf = make_file_shelf(config, home)

    async def shelve(platform: str, name: str, file: BinaryIO) -> str:
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        stored = await shelf.add(platform, name, _pieces(file), purpose="assistants_output", media_type=kind)
        return stored.id

    return shelve


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(file.read, _PIECE_BYTES):
        yield piece


def make_input_parts(config: Config, home: Home, shelf: FileShelf, sandbox: SandboxOpener) -> InputParts:
    store = media_store(config, home)

    @cache
    def source() -> InputSource:
        from hermes.app.factories.input_source import InputSource  # noqa: PLC0415 - few requests have files

        return InputSource(
            max_bytes=store.limits.file_bytes, allow_private_urls=config.web.allow_private_urls, sandbox=sandbox
        )

    async def fetch(url: str) -> tuple[bytes, str]:
        return await source().download(url)

    async def read_document(data: bytes, media_type: str, name: str) -> str:
        return await source().read_document(data, media_type, name)

    return InputParts(store, shelf, download=fetch, read_document=read_document)
