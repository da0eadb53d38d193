"""Files that people send can be fetched, and files are sent as what they are."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.adapters.telegram.adapter import TelegramAdapter
from hermes.domain.errors import PlatformError, UnsendableFileError
from hermes.ports.chat import Attachment, FileSource
from tests.adapters.telegram.outgoing import outgoing
from tests.support.telegram_server import Fault, TelegramServer

PNG = b"\x89PNG picture"


async def fetched(adapter: TelegramAdapter, file_id: str = "f1") -> bytes:
    pieces = [piece async for piece in adapter.fetch(Attachment(kind="file", file_id=file_id))]
    return b"".join(pieces)


async def test_a_file_is_fetched(server: TelegramServer, adapter: TelegramAdapter) -> None:
    assert isinstance(adapter, FileSource)
    content = bytes(range(256)) * 4000
    server.has_file("f1", content)
    assert await fetched(adapter) == content


@pytest.mark.parametrize(
    ("method", "fault", "problem"),
    [
        ("getFile", Fault(status=400, description="Bad Request: file is too big"), "files larger than 20 MB"),
        ("getFile", Fault.bad_gateway(), "or a proxy failed"),
        ("getFile", Fault(status=200, page=b'{"ok": true}'), "no download"),
        ("file", Fault(status=404), "or a proxy failed"),
        ("file", Fault(delay_s=60), "did not answer in time"),
    ],
)
async def test_a_file_that_cannot_be_fetched_is_explained(
    method: str, fault: Fault, problem: str, server: TelegramServer, adapter: TelegramAdapter
) -> None:
    server.has_file("f1", b"x")
    server.fail(method, fault)
    with pytest.raises(PlatformError, match=problem):
        await fetched(adapter)


async def test_missing_file_is_explained(server: TelegramServer, adapter: TelegramAdapter) -> None:
    with pytest.raises(PlatformError, match="rong file_id"):
        await fetched(adapter)


@pytest.mark.parametrize(
    "file",
    [
        ("photo", "cat.PNG", PNG),
        ("document", "odd.png", b"no picture at all"),
        ("voice", "hello.ogg", b"OggS"),
        ("audio", "song.mp3", b"ID3"),
        ("audio", "talk.M4A", b"ftyp"),
        ("video", "film.mp4", b"ftyp"),
        ("document", "odd.mp3", b"no music at all"),
        ("document", "odd.mp4", b"no film at all"),
        ("document", "report.pdf", b"%PDF"),
        ("document", 'ü "€".txt', b"text"),
    ],
)
async def test_a_file_is_sent_as_what_it_is(
    file: tuple[str, str, bytes], server: TelegramServer, adapter: TelegramAdapter, tmp_path: Path
) -> None:
    server.say(7, 7, "hello")
    kind, name, content = file
    path = tmp_path / name
    await asyncio.to_thread(path.write_bytes, content)
    message = await adapter.platform.send_file(outgoing(), str(path), "(a repeat)")
    shown = server.history(7)[-1]
    assert str(shown.id) == message
    assert shown.file == (kind, name, content)
    assert shown.text == "(a repeat)"


async def test_a_file_in_a_group_quotes_what_it_answers_like_a_text(
    server: TelegramServer, adapter: TelegramAdapter, tmp_path: Path
) -> None:
    path = tmp_path / "report.pdf"
    await asyncio.to_thread(path.write_bytes, b"%PDF")
    asked = server.say(-5, 7, "the report, please", thread=33)
    first = outgoing(chat=-5, thread="33", message=str(asked))
    await adapter.platform.send_file(first, str(path), "")
    await adapter.platform.send_file(replace(first, sent=("9",)), str(path), "")
    assert [(each.thread, each.reply_to) for each in server.history(-5)[1:]] == [(33, asked), (33, None)]
    alone = server.say(7, 7, "the report, please")
    await adapter.platform.send_file(outgoing(message=str(alone)), str(path), "")
    assert server.history(7)[-1].reply_to is None


async def test_unsendable_file_is_reported(server: TelegramServer, adapter: TelegramAdapter, tmp_path: Path) -> None:
    server.say(7, 7, "hello")
    empty = tmp_path / "empty"
    await asyncio.to_thread(empty.touch)
    huge = tmp_path / "huge"
    await asyncio.to_thread(huge.write_bytes, b"1" * ((50 << 20) + 1))
    for path, problem in ((tmp_path / "gone", "no longer exists"), (empty, "empty"), (huge, "50 MB")):
        with pytest.raises(UnsendableFileError, match=problem):
            await adapter.platform.send_file(outgoing(), str(path), "")
    assert len(server.history(7)) == 1
