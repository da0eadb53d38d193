"""Unfinished input line of a process."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.processes.typed import as_read, unfinished
from tests.processes.stage import ProcessFixture


@pytest.mark.parametrize(
    ("pieces", "line"),
    [
        (["rm -r", "f ", "/"], "rm -rf /"),
        (["ls\nrm "], "rm "),
        (["rm -rf \\\n", "/"], "rm -rf \\\n/"),
        (["echo \\\\\n", "/"], "/"),
        (["ls\r", "x"], "x"),
        (["ls\n"], ""),
    ],
)
def test_a_line_goes_on_until_a_newline_ends_it(pieces: list[str], line: str) -> None:
    typed = b""
    for piece in pieces:
        typed = unfinished(typed, piece.encode())
    assert typed == line.encode()


@given(st.lists(st.text(alphabet="a\\\r\n", max_size=6), max_size=6))
def test_split_of_the_input_does_not_matter(pieces: list[str]) -> None:
    typed = b""
    for piece in pieces:
        typed = unfinished(typed, piece.encode())
    assert typed == unfinished(b"", "".join(pieces).encode())


def test_both_ends_of_a_long_line_are_kept() -> None:
    typed = unfinished(b"rm -rf", b" " * 1_000_000 + b"/")
    assert len(typed) < 20_000
    assert (typed[:6], typed[-1:]) == (b"rm -rf", b"/")


@pytest.mark.parametrize(
    ("typed", "read"),
    [
        ("rm -rX\x7ff /", "rm -rf /"),
        ("lsX\b\b\b\b\brm", "rm"),
        ("harmless\x15rm", "rm"),
        ("harmless\x03rm", "rm"),
        ("ls\rrm", "ls\nrm"),
        ("ls\n\x7f\x7frm", "ls\nrm"),
    ],
)
def test_a_terminal_reads_what_is_left_after_erasing(typed: str, read: str) -> None:
    assert as_read(typed) == read


def test_sent_input_is_known_to_a_later_daemon(stage: ProcessFixture) -> None:
    handle = stage.run("cat")
    assert stage.write(handle, b"one\nrm -r") == 9
    later = ProcessFixture(stage.root)
    assert later.typed(handle.id) == b"rm -r"
    assert later.write(handle, b"f x\n") == 4
    assert stage.typed(handle.id) == b""
    stage.until_output(handle, b"rm -rf x\n")
    assert stage.typed("proc_unknown") == stage.typed(f"../{Path(handle.folder).parent.name}/{handle.id}") == b""


def test_input_that_was_not_accepted_does_not_count(stage: ProcessFixture) -> None:
    handle = stage.run("sleep", "1000")
    sent = stage.write(handle, b"a" * 1000 + b"\n" + b"b" * 10**6 + b"\n", 0.1)
    assert 1001 < sent < 10**6
    assert stage.typed(handle.id)[:1] == b"b"
