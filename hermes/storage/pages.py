"""Reader of a table page by page from the file, which skips damaged pages.

LMDB's cursors crash the process on a page that does not match its parent (after a lost sector, for example). So
scans of a table are read here, within a transaction that keeps its pages from being reused. A damaged page is skipped
with everything below it.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from loguru import logger

Pair = tuple[bytes, bytes]

# LMDB 0.9, 64 bits, in the byte order of the machine, as the engine itself expects it.
_PAGE = struct.Struct("=QHHHH")  # page number, unused, flags, end of the pointers, start of the nodes
_LONG = struct.Struct("=QHHI")  # first page of a large value: page number, unused, flags, page count
_NODE = struct.Struct("=IHH")  # in a leaf: value size, flags, key size
_NUMBER = struct.Struct("=Q")
_ROOT_AT: Final = 40  # offset in the description of a table
_NO_ROOT: Final = 2**64 - 1  # of an empty table
_BRANCH: Final = 0x01
_LEAF: Final = 0x02
_OVERFLOW: Final = 0x04
_ELSEWHERE: Final = 0x01  # the value is on separate pages
_MAX_DEPTH: Final = 32  # deeper than any intact table; stops at a page that is its own ancestor


class DataPages:
    """Pages of one data file. Thread-safe."""

    def __init__(self, file: Path, page_size: int) -> None:
        self._descriptor = os.open(file, os.O_RDONLY)
        self._size = page_size
        self._lost: set[int] = set()

    def close(self) -> None:
        os.close(self._descriptor)

    def walk(self, table: bytes, start: bytes) -> Iterator[Pair]:
        """Yield the pairs of the table with that description, in key order from `start`."""
        root = _NUMBER.unpack_from(table, _ROOT_AT)[0]
        return iter(()) if root == _NO_ROOT else self._walk(root, start, 0)

    def can_shrink(self, table: bytes, keys: Sequence[bytes]) -> bool:
        """Return whether these sorted keys can be deleted. LMDB merges small pages with damaged neighbours too."""
        root = _NUMBER.unpack_from(table, _ROOT_AT)[0]
        return root == _NO_ROOT or self._can_delete(root, keys)

    def _can_delete(self, number: int, keys: Sequence[bytes]) -> bool:
        try:
            page, is_leaf, places = self._read(number)
            if is_leaf:
                return True
            firsts = _keys(page, places)
            touched = sorted({max(0, bisect_right(firsts, key) - 1) for key in keys})
            for child in {near for each in touched for near in (each - 1, each + 1) if 0 <= near < len(places)}:
                self._read(_child(page, places[child]))
        except (ValueError, struct.error):
            return False
        ends = [*firsts[1:], None]
        for child in touched:
            end = ends[child]
            inside = keys[bisect_left(keys, firsts[child]) : None if end is None else bisect_left(keys, end)]
            if not self._can_delete(_child(page, places[child]), inside):
                return False
        return True

    def _walk(self, number: int, start: bytes, depth: int) -> Iterator[Pair]:
        try:
            page, is_leaf, places = self._read(number)
            keys = _keys(page, places)
        except (ValueError, struct.error) as error:
            self._log_lost(number, error)
            return
        if is_leaf:
            yield from (
                (key, self._value(page, place)) for key, place in zip(keys, places, strict=True) if key >= start
            )
        elif depth < _MAX_DEPTH:
            for child, place in enumerate(places):
                if child + 1 == len(places) or keys[child + 1] > start:  # else all its keys come before `start`
                    yield from self._walk(_child(page, place), start, depth + 1)

    def _read(self, number: int) -> tuple[bytes, bool, tuple[int, ...]]:
        try:
            page = os.pread(self._descriptor, self._size, number * self._size)
        except (OSError, OverflowError) as error:  # an unreadable sector, or an impossible offset
            raise ValueError(str(error)) from error
        itself, _, flags, lower, upper = _PAGE.unpack_from(page)
        if itself != number or flags not in (_BRANCH, _LEAF) or not _PAGE.size <= lower <= upper <= len(page):
            raise ValueError("not the expected page")
        places = struct.unpack_from(f"={(lower - _PAGE.size) // 2}H", page, _PAGE.size)
        if any(place < upper for place in places):
            raise ValueError("its nodes are misplaced")
        return page, flags == _LEAF, places

    def _log_lost(self, number: int, error: Exception) -> None:
        if number not in self._lost:  # log it once
            self._lost.add(number)
            logger.error("storage: page {} cannot be read ({}); its content is skipped", number, error)

    def _value(self, page: bytes, place: int) -> bytes:
        size, flags, key_size = _NODE.unpack_from(page, place)
        begin = place + _NODE.size + key_size
        if not flags & _ELSEWHERE:
            return page[begin : begin + size]
        try:
            at = _NUMBER.unpack_from(page, begin)[0] * self._size
            _, _, kind, count = _LONG.unpack(os.pread(self._descriptor, _LONG.size, at))
            if kind == _OVERFLOW and size <= count * self._size:
                return os.pread(self._descriptor, size, at + _LONG.size)
        except (OSError, OverflowError, struct.error):
            pass
        return b""  # lost: the checksum check reports it


def _keys(page: bytes, places: tuple[int, ...]) -> list[bytes]:
    begins = [(place + _NODE.size, _NODE.unpack_from(page, place)[2]) for place in places]
    keys = [page[begin : begin + size] for begin, size in begins]
    if any(key >= after for key, after in pairwise(keys)):
        raise ValueError("its keys are out of order")
    return keys


def _child(page: bytes, place: int) -> int:
    low, high, _ = _NODE.unpack_from(page, place)
    number: int = low | high << 32
    return number
