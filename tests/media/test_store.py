"""Files that came in are whole, named by us, bounded, and gone after a while."""

from __future__ import annotations

import asyncio
import os
import re
import stat
import time
from collections.abc import AsyncGenerator
from io import BytesIO
from pathlib import Path

import pytest

from hermes.domain.errors import PlatformError
from hermes.domain.media.scope import media_scope
from hermes.media.store import MediaError, MediaLimits, MediaStore, amount

SCOPE = media_scope("toy", "1")


async def pieces(*data: bytes, then: Exception | None = None) -> AsyncGenerator[bytes, None]:
    for each in data:
        yield each
    if then is not None:
        raise then


def a_store(root: Path, now: float | None = None, **limits: int) -> MediaStore:
    return MediaStore(root / "media", limits=MediaLimits(**limits), clock=lambda: now or time.time())


async def listed(store: MediaStore) -> list[Path]:
    return await asyncio.to_thread(lambda: sorted(path for path in store.root.rglob("*") if path.is_file()))


async def test_incoming_file_and_its_name_are_synced(tmp_path: Path, synced: list[Path]) -> None:
    path = await a_store(tmp_path).keep(SCOPE, "key", "a.txt", pieces(b"one"))
    assert synced[0] == tmp_path, "the name of the store's own directory"
    assert synced[1].parent == path.parent, "the draft, before it gets its name"
    assert synced[1].suffix == ".part"
    assert synced[2:] == [path.parent, path.parent.parent]


async def test_outgoing_copy_and_its_names_are_synced(tmp_path: Path, synced: list[Path]) -> None:
    store = a_store(tmp_path)
    copy = await asyncio.to_thread(store.put_aside, BytesIO(b"figures"), "report.txt")
    assert synced == [tmp_path, copy, copy.parent, store.root / "out", store.root]


@pytest.mark.parametrize("name", ["../../etc/passwd.TXT", "a\0b.txt", ".txt"])
async def test_a_file_is_named_by_a_hash_and_not_by_its_sender(name: str, tmp_path: Path) -> None:
    path = await a_store(tmp_path).keep(SCOPE, "telegram:../1", name, pieces(b"one", b"two"))
    assert path.parent == tmp_path / "media" / SCOPE
    assert re.fullmatch(r"[0-9a-f]{64}\.txt", path.name)
    assert await asyncio.to_thread(path.read_bytes) == b"onetwo"


@pytest.mark.parametrize("umask", [0o022, 0o077])
async def test_received_files_are_readable_below_a_private_directory(umask: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        path = await a_store(tmp_path).keep(SCOPE, "1", "a.txt", pieces(b"one"))
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent, path.parent.parent)]
    assert modes == [0o644, 0o755, 0o700]


async def test_same_file_is_kept_apart_for_each_chat(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    first = await store.keep(SCOPE, "telegram:1", "a.txt", pieces(b"one"))
    second = await store.keep(media_scope("toy", "2"), "telegram:1", "a.txt", pieces(b"one"))
    assert first.name == second.name
    assert first.parent != second.parent


async def test_what_is_there_is_not_fetched_again(tmp_path: Path) -> None:
    store = a_store(tmp_path)
    first = await store.keep(SCOPE, "telegram:1", "a.txt", pieces(b"one"))
    again = await store.keep(SCOPE, "telegram:1", "a.txt", pieces(then=AssertionError("fetched again")))
    assert first == again


async def test_a_file_that_breaks_off_or_is_too_large_leaves_nothing(tmp_path: Path) -> None:
    store = a_store(tmp_path, file_bytes=5)
    with pytest.raises(MediaError, match="larger than"):
        await store.keep(SCOPE, "1", "", pieces(b"123", b"456"))
    with pytest.raises(PlatformError):
        await store.keep(SCOPE, "1", "", pieces(b"1", then=PlatformError("no route")))
    assert await listed(store) == []


async def test_a_disk_that_refuses_is_explained(tmp_path: Path) -> None:
    (tmp_path / "media").touch()
    with pytest.raises(MediaError, match="could not be stored: File exists"):
        await a_store(tmp_path).keep(SCOPE, "2", "", pieces(b"1"))


async def test_the_old_and_the_oldest_of_too_much_are_swept_away(tmp_path: Path) -> None:
    store = a_store(tmp_path, now=10_000_000.0)
    old = await store.keep(SCOPE, "old", "", pieces(b"1"))
    first = await store.keep(SCOPE, "first", "", pieces(b"123456"))
    second = await store.keep(SCOPE, "second", "", pieces(b"123456"))
    flat = tmp_path / "media" / ("0" * 64)  # where older versions kept it
    await asyncio.to_thread(flat.write_bytes, b"")
    sent = await asyncio.to_thread(store.put_aside, BytesIO(b""), "report.txt")
    for path, at in ((old, 1.0), (first, 9_999_000.0), (second, 9_999_001.0), (sent, 2.0), (flat, 3.0)):
        os.utime(path, (at, at))
    await asyncio.to_thread(a_store(tmp_path, now=10_000_000.0, total_bytes=10).sweep)
    assert second in await listed(store)
    assert {old, first, sent, flat}.isdisjoint(await listed(store))
    assert not sent.parent.exists()


async def test_it_tidies_itself_once_an_hour(tmp_path: Path) -> None:
    store = a_store(tmp_path, now=10_000_000.0)
    await store.tidy()
    old = await store.keep(SCOPE, "old", "", pieces(b"1"))
    os.utime(old, (1.0, 1.0))
    await store.tidy()
    assert await listed(store) == [old]
    later = a_store(tmp_path, now=10_003_600.0)
    await later.tidy()
    assert await listed(later) == []


async def test_a_file_to_be_sent_is_copied_under_its_own_name(tmp_path: Path) -> None:
    copy = await asyncio.to_thread(a_store(tmp_path).put_aside, BytesIO(b"report"), "ü" * 100 + ".txt")
    assert copy.name.startswith("üü")
    assert await asyncio.to_thread(copy.read_bytes) == b"report"


@pytest.mark.parametrize(("size", "told"), [(1, "1 KB"), (60_000, "58 KB"), (200_000, "0.2 MB"), (20 << 20, "20 MB")])
def test_a_small_file_is_counted_in_kilobytes(size: int, told: str) -> None:
    assert amount(size) == told


async def test_total_is_enforced_when_a_file_is_stored(tmp_path: Path) -> None:
    store = a_store(tmp_path, total_bytes=10)
    paths = []
    for number in range(5):
        path = await store.keep(SCOPE, str(number), "", pieces(b"1234"))
        await asyncio.to_thread(os.utime, path, (number, time.time() - 100 + number))
        paths.append(path)
        assert sum(each.stat().st_size for each in await listed(store)) <= 10
    assert await listed(store) == sorted(paths[-2:])
    copy = await asyncio.to_thread(store.put_aside, BytesIO(b"123456"), "original")
    assert await listed(store) == sorted([paths[-1], copy])


async def test_file_larger_than_the_total_removes_nothing(tmp_path: Path) -> None:
    store = a_store(tmp_path, total_bytes=10)
    kept = await store.keep(SCOPE, "1", "", pieces(b"1234"))
    with pytest.raises(MediaError, match="larger than"):
        await asyncio.to_thread(store.put_aside, BytesIO(b"x" * 11), "original")
    with pytest.raises(MediaError, match="larger than"):
        await store.keep(SCOPE, "2", "", pieces(b"x" * 11))
    assert await listed(store) == [kept]
