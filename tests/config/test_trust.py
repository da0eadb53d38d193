"""Trusted directories, and the working directory of a conversation."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from hermes.config.trust import (
    TRUST_FILE,
    Unfit,
    WorkingDirectories,
    read_answers,
    read_workdir,
    remember_answer,
    unfit,
    write_workdir,
)
from hermes.domain.errors import BadInputError
from hermes.domain.ids import SessionId

OWN = (Path("/home/ann/.local/share/hermes"), Path("/home/ann/.config/hermes"))


@pytest.mark.parametrize(
    ("directory", "reason"),
    [
        ("/", Unfit.ROOT),
        ("/home", Unfit.HOME),
        ("/home/ann", Unfit.HOME),
        ("/home/ann/.local", Unfit.HERMES),
        ("/home/ann/.local/share/hermes", Unfit.HERMES),
        ("/home/ann/.local/share/hermes/work/s1", Unfit.HERMES),
        ("/home/ann/.config", Unfit.HERMES),
        ("/srv/\udcff", Unfit.NAME),
        ("/home/ann/project", None),
        ("/home/annabel", None),
        ("/srv", None),
    ],
)
def test_some_directories_are_never_worked_in(directory: str, reason: Unfit | None) -> None:
    assert unfit(Path(directory), person=Path("/home/ann"), own=OWN) is reason


def test_answers_are_kept_in_a_private_file(tmp_path: Path) -> None:
    assert read_answers(tmp_path) == {}
    remember_answer(tmp_path, Path("/a"), trusted=True)
    remember_answer(tmp_path, Path("/b"), trusted=False)
    assert read_answers(tmp_path) == {"/a": True, "/b": False}
    remember_answer(tmp_path, Path("/b"), trusted=True)
    assert read_answers(tmp_path) == {"/a": True, "/b": True}
    assert stat.S_IMODE((tmp_path / TRUST_FILE).stat().st_mode) == 0o600


@pytest.mark.parametrize("content", ["", "[]", '{"directories": ["/a"]}', '{"directories": {"/a": "yes"}}', "\0"])
def test_a_damaged_file_trusts_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / TRUST_FILE).write_text(content)
    assert read_answers(tmp_path) == {}
    remember_answer(tmp_path, Path("/b"), trusted=True)
    assert read_answers(tmp_path) == {"/b": True}


def test_the_directory_of_a_conversation_is_kept_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "work" / "s1"
    assert read_workdir(folder) is None
    write_workdir(folder, "/srv/with a\nline")
    assert read_workdir(folder) == "/srv/with a\nline"
    for bad in (b"relative", b"", b"/\xff", b"/a\0b"):
        (folder / "workdir").write_bytes(bad)
        assert read_workdir(folder) is None


def test_a_conversation_keeps_the_directory_that_it_began_in(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    root = SessionId("s1")
    workdirs = WorkingDirectories(folder_of=lambda session: tmp_path / "work" / session, own=(tmp_path / "work",))
    assert workdirs.choose(root, str(first)) == str(first)
    assert workdirs.choose(root, str(second)) == str(first)
    worked = tmp_path / "work" / "s2"
    worked.mkdir()
    (worked / "shell.json").write_text("{}")
    assert workdirs.choose(SessionId("s2"), str(second)) is None
    for refused in (tmp_path, tmp_path / "gone", Path("/")):
        with pytest.raises(BadInputError):
            workdirs.choose(SessionId("s3"), str(refused))
    assert not (tmp_path / "work" / "s3").exists()
