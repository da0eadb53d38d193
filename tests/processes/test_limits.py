"""Commands over their limits: each is ended with its reason."""

from __future__ import annotations

import sys
import time

import pytest

from hermes.domain.process.process import EndReason, ProcessLimits
from tests.processes.stage import ProcessFixture, with_argument
from tests.support.waiting import eventually


def storm(mark: str, escape: str = "") -> str:
    """Return a script that starts more processes than these tests allow, but not all that the machine has."""
    return f"i=0; while [ $i -lt 500 ]; do i=$((i+1)); {escape}sleep {mark} & done; wait"


@pytest.mark.parametrize("escape", ["", "setsid "])
def test_a_storm_of_processes_is_ended(stage: ProcessFixture, escape: str) -> None:
    mark = f"1{time.monotonic_ns()}"
    end = stage.ended(stage.run("sh", "-c", storm(mark, escape), limits=ProcessLimits(processes=40)))
    assert end.reason is EndReason.PROCESSES
    assert "more than the 40 allowed" in end.detail
    assert with_argument(mark) == []


def test_a_fork_bomb_is_ended(stage: ProcessFixture) -> None:
    mark = f"1{time.monotonic_ns()}"
    script = f"bomb() {{ [ $1 -lt 9 ] || exec sleep {mark}; sleep 0.1; bomb $(($1+1)) & bomb $(($1+1)); }}; bomb 0"
    end = stage.ended(stage.run("sh", "-c", script, limits=ProcessLimits(processes=60)))
    assert end.reason is EndReason.PROCESSES
    assert with_argument(mark) == []


def test_a_storm_after_a_long_silence_is_noticed_too(stage: ProcessFixture) -> None:
    mark = f"1{time.monotonic_ns()}"
    handle = stage.run("sh", "-c", f"read x; {storm(mark)}", limits=ProcessLimits(processes=100))
    assert stage.wait(handle, 2.5) is None  # silence is what is tested
    stage.write(handle, b"\n")
    assert stage.ended(handle).reason is EndReason.PROCESSES
    assert with_argument(mark) == []


def test_a_memory_hog_is_ended(stage: ProcessFixture) -> None:
    hog = "import time\nkept = []\nwhile True: kept.append(b'x' * 10**6 + b'y'); time.sleep(0.001)"
    handle = stage.run(sys.executable, "-c", hog, limits=ProcessLimits(memory_bytes=100 * 2**20))
    end = stage.ended(handle)
    assert end.reason is EndReason.MEMORY
    assert "more than the 104857600 allowed" in end.detail


def test_memory_that_is_shared_counts_once(stage: ProcessFixture) -> None:
    crowd = (
        "import os, time\nkept = b'x' * 60_000_000\n"
        "for _ in range(5):\n if os.fork() == 0: break\n"
        "print('up', flush=True)\ntime.sleep(100)"
    )
    handle = stage.run(sys.executable, "-c", crowd, limits=ProcessLimits(memory_bytes=200 * 2**20))
    eventually(lambda: stage.all_output(handle).count(b"up") == 6)
    assert (stage.look(handle).rss_bytes or 0) > 200 * 2**20
    assert stage.wait(handle, 1.5) is None


def test_endless_output_is_ended(stage: ProcessFixture) -> None:
    limits = ProcessLimits(output_bytes=50_000_000, spool_bytes=100_000)
    handle = stage.run("yes", limits=limits)
    end = stage.ended(handle)
    assert end.reason is EndReason.OUTPUT
    assert 50_000_000 < end.output_bytes < 60_000_000
    assert len(stage.all_output(handle)) <= 100_000


def test_runaway_in_its_grace_is_ended_immediately(stage: ProcessFixture) -> None:
    script = "trap '' TERM; echo up; read x; yes"
    handle = stage.run("sh", "-c", script, limits=ProcessLimits(output_bytes=50_000_000))
    stage.until_output(handle, b"up")
    stage.kill(handle, grace_s=1000)
    stage.write(handle, b"\n")  # only now, or it could be too much before the kill
    assert stage.ended(handle).reason is EndReason.KILLED


def test_zero_means_unlimited(stage: ProcessFixture) -> None:
    limits = ProcessLimits(memory_bytes=0, processes=0, output_bytes=0)
    handle = stage.run("sh", "-c", "for i in 1 2 3; do sleep 0.3 & done; seq 1000; wait", limits=limits)
    assert stage.ended(handle).reason is EndReason.EXITED
