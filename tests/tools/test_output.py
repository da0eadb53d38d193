from __future__ import annotations

import re
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.tools.terminal.command_output import OutputLimits, fit, storable

LIMITS = OutputLimits()
ANY_TEXT = st.text(st.characters(), max_size=400)


def fitted(text: str, folder: Path, call: str = "call", limits: OutputLimits = LIMITS) -> str:
    return fit(text, folder, call, limits, str)


@given(ANY_TEXT)
def test_any_text_becomes_storable(text: str) -> None:
    kept = storable(text)
    assert kept.encode().decode() == kept
    assert "\0" not in kept
    assert storable(kept) == kept


def test_text_that_was_storable_stays_as_it_is() -> None:
    assert storable("ä 😀 \t\r\n") == "ä 😀 \t\r\n"
    assert storable("\ud83d\ude00") == "😀"
    assert storable("a\ud800b\0c") == "a\ufffdb\ufffdc"


def test_what_fits_is_not_touched_and_leaves_no_file(tmp_path: Path) -> None:
    text = "x" * 2_000 + "\nend\n"
    assert fitted(text, tmp_path) == text
    assert list(tmp_path.iterdir()) == []


def test_too_many_lines_leave_head_tail_and_the_whole_in_a_file_that_tools_can_read(tmp_path: Path) -> None:
    text = "\n".join(str(number) for number in range(10_000))
    shown = fitted(text, tmp_path)
    path = tmp_path / "outputs" / "call.txt"
    assert path.read_text() == text
    assert [stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent)] == [0o644, 0o755]
    assert shown.startswith("0\n1\n")
    assert shown.endswith("\n9998\n9999")
    assert len(shown.split("\n")) <= 2_000
    assert f"the whole output has 10,000 lines and {len(text):,} bytes and is in {path}" in shown
    left_out = re.search(r"\[\.\.\. ([\d,]+) lines omitted", shown)
    assert left_out
    assert int(left_out[1].replace(",", "")) + len(shown.split("\n")) - 1 == 10_000


def test_long_lines_are_cut_and_said_to_be(tmp_path: Path) -> None:
    shown = fitted("a" * 5_000 + "\nshort", tmp_path)
    assert shown.startswith(
        "a" * 2_000 + "... [3,000 more characters]\nshort\n[long lines were truncated; the whole output"
    )


@given(st.lists(st.text("ab😀\n", max_size=60), max_size=60), st.integers(600, 1_500), st.integers(5, 50))
def test_the_limits_hold_for_any_text(parts: list[str], size: int, lines: int) -> None:
    limits = OutputLimits(size_bytes=size, lines=lines, line_chars=40)
    text = "\n".join(parts)
    with tempfile.TemporaryDirectory() as folder:
        shown = fitted(text, Path(folder), limits=limits)
        assert len(shown.encode()) <= size
        assert len(shown.split("\n")) <= lines + 1
        spilled = Path(folder) / "outputs" / "call.txt"
        assert shown == text or spilled.read_text() == text


@pytest.mark.parametrize("call", ["../../evil", "/etc/evil", "", "a\0b", "x" * 5_000, "\ud800"])
def test_an_id_that_is_no_file_name_stays_inside(call: str, tmp_path: Path) -> None:
    fitted("x\n" * 5_000, tmp_path / "conversation", call)
    [file] = (tmp_path / "conversation" / "outputs").iterdir()
    assert re.fullmatch(r"[0-9a-f]{16}\.txt", file.name)
    assert [each.name for each in tmp_path.iterdir()] == ["conversation"]


def test_the_same_id_in_a_later_turn_does_not_overwrite(tmp_path: Path) -> None:
    fitted("a\n" * 5_000, tmp_path)
    assert "call-2.txt" in fitted("b\n" * 5_000, tmp_path)
    assert (tmp_path / "outputs" / "call.txt").read_text() == "a\n" * 5_000


def test_an_output_that_cannot_be_kept_is_still_shown(tmp_path: Path) -> None:
    (tmp_path / "outputs").write_text("in the way")
    shown = fitted("a\n" * 5_000, tmp_path)
    assert "could not be stored" in shown
    assert shown.startswith("a\n")
