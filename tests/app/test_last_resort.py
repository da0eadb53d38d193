"""The end of a stop that hangs."""

from __future__ import annotations

import subprocess
import sys
import threading

from hermes.app.process import ShutdownWatchdog


def test_when_all_is_done_it_leaves_in_order_whatever_threads_are_left() -> None:
    left = threading.Event()
    ShutdownWatchdog(600.0).all_is_done(left.set)
    assert left.wait(20)


def test_a_restart_comes_back_whatever_threads_are_left() -> None:
    script = """
import os, sys, time
from functools import partial
from types import SimpleNamespace
from hermes.app.process import ShutdownWatchdog, _leave_now
if "ANEW" in os.environ:
    sys.exit("it is back")
restart = SimpleNamespace(comes_back=True)
ShutdownWatchdog(600.0).all_is_done(partial(_leave_now, {**os.environ, "ANEW": "1"}, restart, 0))
time.sleep(60)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=False)
    assert done.stderr == "it is back\n"


def test_a_stop_that_hangs_is_left_and_one_that_goes_on_is_not() -> None:
    script = """
import time
from hermes.app.process import ShutdownWatchdog
last_resort = ShutdownWatchdog(5.0)
for _ in range(3):
    time.sleep(2)
    last_resort.put_off()
print("it goes on", flush=True)
time.sleep(60)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 75
    assert "it goes on" in done.stdout
    assert "leaving by force" in done.stderr
