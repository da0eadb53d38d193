"""Forced exits of a shutdown."""

from __future__ import annotations

import subprocess
import sys
import threading

from hermes.supervision.watchdog import EXIT_TRY_AGAIN, ShutdownWatchdog


def test_process_exits_when_threads_are_left() -> None:
    exited = threading.Event()
    watchdog = ShutdownWatchdog(lambda: 600.0)
    watchdog.arm()
    watchdog.disarm(exited.set)
    assert exited.wait(20)


def test_restart_happens_when_threads_are_left() -> None:
    script = """
import os, sys, time
from functools import partial
from types import SimpleNamespace
from hermes.app.host.daemon_process import _exit_now
from hermes.supervision.watchdog import ShutdownWatchdog
if "RESTARTED" in os.environ:
    sys.exit("restarted")
restart = SimpleNamespace(comes_back=True)
ShutdownWatchdog(lambda: 600.0).disarm(partial(_exit_now, {**os.environ, "RESTARTED": "1"}, restart, 0))
time.sleep(60)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=False)
    assert done.stderr == "restarted\n"


def test_shutdown_that_hangs_is_ended_and_one_that_is_extended_is_not() -> None:
    script = """
import time
from hermes.supervision.watchdog import ShutdownWatchdog
watchdog = ShutdownWatchdog(lambda: 5.0)
for _ in range(4):
    watchdog.arm()
    time.sleep(2)
print("extended", flush=True)
time.sleep(60)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == EXIT_TRY_AGAIN
    assert "extended" in done.stdout
    assert "shutdown timed out after 5.0 s; forcing exit" in done.stderr
