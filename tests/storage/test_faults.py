"""Kills, full disks and failing disks, each in a process of its own."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hermes.domain.ids import SessionId
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.verify import verify
from tests.storage.samples import message

CHILD = [sys.executable, "-m", "tests.storage.child"]
A = SessionId("a")


def run(*command: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(command, capture_output=True, timeout=50, check=False)


def report_of(*command: str) -> dict[str, object]:
    done = run(*command)
    assert done.returncode == 0, done.stderr.decode()
    report: dict[str, object] = json.loads(done.stdout)
    return report


# ---------------------------------------------------------------- kill -9


def test_no_kill_loses_what_was_acknowledged(tmp_path: Path) -> None:
    dice = random.Random(7)
    acknowledged = 0
    for _ in range(10):
        acknowledged = max(
            acknowledged, kill_a_writer(tmp_path, commits=dice.randrange(1, 60), pause_s=dice.random() / 500)
        )
        assert verify(tmp_path) == []
        engine = LmdbEngine.open(tmp_path)
        log = engine.log(A)
        engine.close()
        assert len(log) >= acknowledged
        assert [entry.record for entry in log] == [message(f"number {n}") for n in range(len(log))]


def kill_a_writer(directory: Path, *, commits: int, pause_s: float) -> int:
    """The last number that it said was stored, after it was killed at some moment past so many commits."""
    with subprocess.Popen([*CHILD, "write_for_ever", str(directory)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        last = 0
        for _ in range(commits):
            last = int(child.stdout.readline())
        time.sleep(pause_s)  # not to wait for anything: so that the kill lands anywhere in a commit
        child.send_signal(signal.SIGKILL)
        lines = child.stdout.read().splitlines(keepends=True)
        return max([last, *(int(line) for line in lines if line.endswith("\n"))])


# ---------------------------------------------------------------- a full disk


def test_a_full_disk_refuses_writes_and_nothing_else_and_recovers(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mount = f"mount -t tmpfs -o size=64m none {place}"
    if shutil.which("unshare") is None or run("unshare", "-m", "sh", "-c", mount).returncode:
        pytest.skip("no small file system can be mounted here (needs root and unshare)")
    child = " ".join([*CHILD, "fill_a_small_disk", str(place)])
    report = report_of("unshare", "-m", "sh", "-c", f"{mount} && exec {child}")
    assert report == {
        "was_full": True,
        "log_is_what_was_stored": True,
        "others_can_be_read": True,
        "reserve_at_first": True,
        "erased": "NoneType",
        "refused": "StorageFullError",
        "after": ["NoneType", "NoneType"],
        "log_goes_on": True,
        "reserve_at_last": True,
    }


@pytest.mark.parametrize("room", [64 * 1024, 64 * 1024 + 1001], ids=["at a page", "within a page"])
def test_a_file_that_may_not_grow_refuses_writes_and_nothing_else_and_recovers(tmp_path: Path, room: int) -> None:
    report = report_of(*CHILD, "reach_a_limit", str(tmp_path), str(room))
    assert report.pop("erased") in ("NoneType", "StorageFullError")
    assert report == {
        "was_full": True,
        "log_is_what_was_stored": True,
        "others_can_be_read": True,
        "refused": "StorageFullError",
        "after": ["NoneType", "NoneType"],
        "log_goes_on": True,
    }
    assert verify(tmp_path) == []


def test_a_full_map_without_address_space_to_grow_refuses_writes_and_nothing_else_and_recovers(
    tmp_path: Path,
) -> None:
    report = report_of(*CHILD, "reach_the_end_of_the_address_space", str(tmp_path))
    assert report == {
        "stored": report["stored"],
        "readable": True,
        "refused": ["StorageFullError"],
        "after": ["NoneType"],
    }
    assert 100 < int(str(report["stored"])) < 200  # as much as the map holds
    assert verify(tmp_path) == []


# ---------------------------------------------------------------- a failing disk


@pytest.mark.parametrize("call", ["fdatasync", "pwrite64"])
def test_a_disk_that_fails_is_not_trusted_any_more(tmp_path: Path, call: str) -> None:
    if shutil.which("strace") is None or run("strace", "-qq", "-e", "trace=none", "true").returncode:
        pytest.skip("no errors can be injected here (needs strace)")
    inject = f"inject={call}:error=EIO:when=30+"
    report = report_of(
        "strace",
        "-f",
        "-qq",
        "-o",
        os.devnull,
        "-e",
        f"trace={call}",
        "-e",
        inject,
        *CHILD,
        "meet_a_failing_disk",
        str(tmp_path),
    )
    assert "Input/output error" in str(report["error"])
    assert verify(tmp_path) == []
    engine = LmdbEngine.open(tmp_path)
    assert len(engine.log(A)) == report["stored"]
    engine.close()
