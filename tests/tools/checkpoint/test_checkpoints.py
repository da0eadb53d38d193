"""Checkpoints: a directory returns exactly to what it was, through no link, within its limits."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.domain.errors import BadInputError
from hermes.domain.ids import SessionId, TurnId
from hermes.tools.checkpoint.checkpoints import Checkpoints, CheckpointSettings, listed
from hermes.tools.checkpoint.snapshot import SnapshotLimits
from hermes.tools.tool import ToolContext


class Place:
    """A conversation's folder and its working directory."""

    def __init__(self, root: Path, settings: CheckpointSettings) -> None:
        self.folder, self.work = root / "folder", root / "work"
        self.folder.mkdir()
        self.work.mkdir()
        self.turns = 0
        self.checkpoints = Checkpoints(settings, work_of=lambda *_: str(self.work), clock=lambda: 1.0)

    def turn(self) -> None:
        """Begin a turn with a checkpoint."""
        self.turns += 1
        self.again()

    def again(self) -> None:
        turn = TurnId(f"t{self.turns}")
        context = ToolContext(session=SessionId("s"), turn=turn, call="c", platform="cli", folder=self.folder)
        self.checkpoints.before("write_file", context)

    def state(self) -> dict[str, str]:
        found = {}
        for path in sorted(self.work.rglob("*")):
            if path.is_symlink():
                found[str(path.relative_to(self.work))] = f"-> {path.readlink()}"
            elif path.is_file():
                mode = "x" if os.access(path, os.X_OK) and path.stat().st_mode & 0o100 else "-"
                found[str(path.relative_to(self.work))] = mode + path.read_text(encoding="utf-8")
        return found


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path, CheckpointSettings(max_snapshots=3))


def test_directory_returns_to_what_it_was_and_back(place: Place) -> None:
    (place.work / "kept.txt").write_text("kept")
    (place.work / "run.sh").write_text("#!/bin/sh")
    (place.work / "run.sh").chmod(0o755)
    (place.work / "deep/er").mkdir(parents=True)
    (place.work / "deep/er/file").write_text("deep")
    (place.work / "link").symlink_to("kept.txt")
    before = place.state()
    place.turn()
    shutil.rmtree(place.work / "deep")
    (place.work / "deep").write_text("now a file")
    (place.work / "run.sh").write_text("changed")
    (place.work / "link").unlink()
    (place.work / "new").mkdir()
    (place.work / "new/file").write_text("new")
    changed = place.state()
    shown = place.checkpoints.compare(place.folder, 1)
    assert set(shown.changed) == {"deep", "deep/er/file", "run.sh", "link", "new/file"}
    assert "-changed" in shown.diff
    assert place.state() == changed
    place.checkpoints.restore(place.folder, 1)
    assert place.state() == before
    place.checkpoints.restore(place.folder, 1)  # what was there before the rollback
    assert place.state() == changed


def test_one_checkpoint_for_each_turn_and_the_oldest_go(place: Place) -> None:
    for number in range(5):
        (place.work / "file").write_text(str(number))
        place.turn()
        place.again()
    assert len(listed(place.folder)) == 3
    with pytest.raises(BadInputError):
        place.checkpoints.restore(place.folder, 4)
    place.checkpoints.restore(place.folder, 3)
    assert place.state() == {"file": "-2"}


def test_git_reads_the_store(place: Place) -> None:
    (place.work / "a.b").write_text("x")
    (place.work / "a").mkdir()
    (place.work / "a/file").write_text("y")
    place.turn()
    done = subprocess.run(
        ["git", "--git-dir", str(place.folder / "checkpoints"), "fsck", "--strict", "--no-dangling"],
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_rollback_writes_through_no_link(place: Place, tmp_path: Path) -> None:
    (place.work / "sub").mkdir()
    (place.work / "sub/file").write_text("inside")
    place.turn()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("untouched")
    shutil.rmtree(place.work / "sub")
    (place.work / "sub").symlink_to(outside)
    place.checkpoints.restore(place.folder, 1)
    assert (outside / "file").read_text() == "untouched"
    assert (place.work / "sub/file").read_text() == "inside"
    assert not (place.work / "sub").is_symlink()


def test_hooks_and_filters_of_the_directory_do_not_run(place: Place) -> None:
    ran = place.work / "ran"
    subprocess.run(["git", "init", "-q", str(place.work)], check=True)
    (place.work / ".gitattributes").write_text("* filter=evil\n")
    (place.work / ".git/hooks/pre-commit").write_text(f"#!/bin/sh\ntouch {ran}\n")
    (place.work / ".git/hooks/pre-commit").chmod(0o755)
    with (place.work / ".git/config").open("a") as config:
        config.write(f'[filter "evil"]\n clean = "touch {ran}; cat"\n smudge = "touch {ran}; cat"\n')
    (place.work / "file").write_text("x\r\n")
    place.turn()
    (place.work / "file").write_text("y")
    place.checkpoints.restore(place.folder, 1)
    assert not ran.exists()
    assert (place.work / "file").read_bytes() == b"x\r\n"


def test_directory_above_a_limit_gets_none_and_large_files_are_left_alone(tmp_path: Path) -> None:
    limits = SnapshotLimits(files=2, file_bytes=10)
    place = Place(tmp_path, replace(CheckpointSettings(), limits=limits))
    (place.work / "large").write_text("x" * 11)
    (place.work / "small").write_text("1")
    place.turn()
    (place.work / "large").write_text("y" * 11)
    (place.work / "small").write_text("2")
    place.checkpoints.restore(place.folder, 1)
    assert place.state() == {"large": "-" + "y" * 11, "small": "-1"}
    for number in range(3):
        (place.work / f"more{number}").write_text("x")
    place.turn()
    assert len(listed(place.folder)) == 2  # the first, and that of the rollback
