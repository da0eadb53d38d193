"""Figures about the daemon process."""

from __future__ import annotations

import mmap
from pathlib import Path

import pytest

from hermes.app.operations import private_bytes

MAPPED_BYTES = 64 << 20


@pytest.fixture
def mapped(tmp_path: Path) -> Path:
    path = tmp_path / "mapped"
    path.write_bytes(bytes(MAPPED_BYTES))
    return path


def test_mapped_file_is_not_counted_as_memory_and_own_memory_is(mapped: Path) -> None:
    before = private_bytes()
    with mapped.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as view:
        assert sum(view[:: mmap.PAGESIZE]) == 0  # every page of it is resident now
        assert private_bytes() - before < MAPPED_BYTES // 4
    own = b"x" * MAPPED_BYTES
    assert private_bytes() - before > len(own) // 2
