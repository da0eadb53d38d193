"""Approvals of prompt files."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from hermes.config.prompt_trust import FILE_NAME, TrustedPrompts


def test_approval_is_of_a_path_and_its_content(tmp_path: Path) -> None:
    store = TrustedPrompts(tmp_path)
    file = tmp_path / "AGENTS.md"
    file.write_bytes(b"one")
    added = store.add(file, b"one")
    assert store.all()[0].is_current
    assert TrustedPrompts(tmp_path).holds(file, b"one")
    assert not store.holds(file, b"two")
    assert not store.holds(tmp_path / "other" / "AGENTS.md", b"one")
    assert store.all() == (added,)
    file.write_bytes(b"two")
    assert not added.is_current
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


def test_removal_is_of_a_directory_or_a_file_and_not_of_those_below(tmp_path: Path) -> None:
    store = TrustedPrompts(tmp_path)
    for name in ("a/AGENTS.md", "a/CLAUDE.md", "a/b/AGENTS.md"):
        store.add(tmp_path / name, b"x")
    assert len(store.remove(tmp_path / "a")) == 2
    assert [each.path for each in store.all()] == [str(tmp_path / "a/b/AGENTS.md")]
    assert len(store.remove(tmp_path / "a/b/AGENTS.md")) == 1
    assert store.remove(tmp_path) == ()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"trusted": [1]}', b'{"trusted": {"/a": 1}}', b"\xff"])
def test_damaged_store_approves_nothing(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    store = TrustedPrompts(tmp_path)
    assert store.all() == ()
    assert not store.holds(Path("/a"), b"x")
    store.add(Path("/a"), b"x")
    assert store.holds(Path("/a"), b"x")
