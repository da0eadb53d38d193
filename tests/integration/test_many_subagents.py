"""Many subagents at once: every result comes back once, and each costs little memory."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(300)

MANY = int(os.environ.get("HERMES_TEST_SUBAGENTS", "40"))
MAX_BYTES_EACH = 60_000


def resident_bytes(pid: int) -> int:
    """Return the memory of the process itself, without the mapped pages of the store."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    [line] = [line for line in lines if line.startswith("RssAnon:")]
    return int(line.split()[1]) * 1024


def test_all_results_come_back_and_memory_stays_small() -> None:
    environ = {"HERMES_DELEGATION_MAX_CONCURRENT_CHILDREN": "1000", "HERMES_LOG_LEVEL": "WARNING"}
    with DaemonProcess(environ=environ) as daemon:
        warm = {"tasks": [{"goal": "!echo warm"}] * 3}
        daemon.ask(f"!tool delegate_task {json.dumps(warm)}", "warm")
        assert daemon.process is not None
        pid, peak = daemon.process.pid, 0
        before = resident_bytes(pid)
        tasks = [{"goal": f"!slow 1 task {number}"} for number in range(MANY)]
        answers: list[str] = []
        began = time.monotonic()
        call = f"!tool delegate_task {json.dumps({'tasks': tasks})}"
        asking = threading.Thread(target=lambda: answers.append(daemon.ask(call, "many").text))
        asking.start()

        def is_over() -> bool:
            nonlocal peak
            peak = max(peak, resident_bytes(pid))
            return not asking.is_alive()

        eventually(is_over, within_s=120)
        took_s, each = time.monotonic() - began, max(0, peak - before) / MANY
        print(f"{MANY} subagents: {took_s:.1f} s, {each / 1000:.0f} KB each at the peak")
        assert answers[0].count("This answer takes 1 seconds") == MANY
        assert all(f"## Task {number}:" in answers[0] for number in range(1, MANY + 1))
        if MANY >= 200:  # fewer do not outweigh what the process takes for itself
            assert each < MAX_BYTES_EACH
