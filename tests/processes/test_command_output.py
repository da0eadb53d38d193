"""Collected output of a command."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.processes.command_output import CommandOutput, plain_text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b]0;title\x07text", "text"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1bPq#0\x1b\\a", "a"),
        (b"\x1b(Ba\x1b=b\x1b", "ab"),
        (b"a\r\nb\rc", "a\nb\nc"),
        (b"N\x08NA\x08AM", "NAM"),
        (b"tab\tbell\x07nul\0", "tab\tbellnul"),
        (b"\xc3\xa4\xff", "ä\ufffd"),
    ],
)
def test_plain_output_has_no_escapes(raw: bytes, text: str) -> None:
    assert plain_text(raw, terminal=False) == text


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"10%\r100%\r\n", "100%\n"),
        (b"a long line\rshort\r\n", "shortg line\n"),
        (b"a long line\r\x1b[Kshort\r\n", "short\n"),
        (b"gone\x1b[2K\rhere", "here"),
        (b"abc\x08\x08X", "aXc"),
        (b"\x1b[32m50%\x1b[0m\r\x1b[32m99%\x1b[0m", "99%"),
        (b"\x08\x08x", "x"),
    ],
)
def test_a_terminal_is_redrawn(raw: bytes, text: str) -> None:
    assert plain_text(raw, terminal=True) == text


@given(st.binary(max_size=300), st.booleans())
def test_any_bytes_become_text_that_can_be_shown(raw: bytes, terminal: bool) -> None:
    text = plain_text(raw, terminal=terminal)
    assert text.encode().decode() == text
    assert all(character in "\n\t" or ord(character) >= 32 for character in text)


@pytest.mark.parametrize("step", [1, 7, 100, 1000])
async def test_head_and_tail_are_kept_and_the_file_is_whole(tmp_path: Path, step: int) -> None:
    whole = "".join(f"{number:04}\n" for number in range(200)).encode()
    output = CommandOutput(tmp_path / "outputs", "call", kept_bytes=100, stored_max_bytes=10_000)
    for start in range(0, len(whole), step):
        await output.add(whole[start : start + step])
    text = output.text(terminal=False)
    assert text.startswith(whole[:40].decode())
    assert text.endswith(whole[-60:].decode())
    assert "900 of 1000 bytes left out" in text
    assert (tmp_path / "outputs" / "call.txt").read_bytes() == whole


async def test_short_output_needs_no_file(tmp_path: Path) -> None:
    output = CommandOutput(tmp_path / "outputs", "call", kept_bytes=100, stored_max_bytes=10_000)
    for _ in range(10):
        await output.add(b"0123456789")
    assert output.text(terminal=False) == "0123456789" * 10
    assert not (tmp_path / "outputs").exists()


async def test_unwritable_file_is_reported_and_output_continues(tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("in the way")
    output = CommandOutput(tmp_path / "outputs", "call", kept_bytes=100, stored_max_bytes=10_000)
    for _ in range(100):
        await output.add(b"0123456789")
    assert "could not be stored: File exists" in output.text(terminal=False)


async def test_a_cut_character_is_left_out(tmp_path: Path) -> None:
    output = CommandOutput(tmp_path / "outputs", "call", kept_bytes=101, stored_max_bytes=10_000)
    await output.add("€".encode() * 100)
    assert "\ufffd" not in output.text(terminal=False)
