"""What the daemon asks of the system for itself, each in a process of its own: it cannot be taken back."""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys

import pytest
from loguru import logger

from hermes.app.host.os_process import LoopErrorLog, connections_within

# As somebody who is not root, who may read everything anyway. A change of the user makes a process private, too.
HIDING = """
import ctypes, os, subprocess
from hermes.app.host.os_process import hide_from_children
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
def read():
    command = ["/bin/cat", f"/proc/{os.getpid()}/environ"]
    return subprocess.run(command, capture_output=True, cwd="/").stdout
assert b"A_SECRET=hush" in read()
hide_from_children()
assert read() == b""
assert b"Pid:" in subprocess.run(["/bin/cat", f"/proc/{os.getpid()}/status"], capture_output=True, cwd="/").stdout
assert b"A_SECRET" in subprocess.run(["/bin/cat", "/proc/self/environ"], capture_output=True, cwd="/").stdout
print("hidden")
"""
LIMITED = """
import resource
from hermes.app.host.os_process import connections_within, raise_descriptor_limit
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 1000))
raise_descriptor_limit()
assert resource.getrlimit(resource.RLIMIT_NOFILE) == (1000, 1000)
print(connections_within(5000), connections_within(10))
"""


def run(script: str, **environ: str) -> str:
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env={**os.environ, **environ}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="it is the kernel's doing")
def test_child_cannot_read_the_environment_of_the_daemon() -> None:
    assert run(HIDING, A_SECRET="hush") == "hidden\n"


def test_descriptor_limit_is_raised_and_limits_connections() -> None:
    allowed, few = map(int, run(LIMITED).split())
    assert 500 < allowed < 900
    assert few == 10


def test_high_descriptor_limit_changes_nothing() -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert connections_within(min(soft, 2000) // 4) == min(soft, 2000) // 4


async def test_refused_connections_are_logged_once_a_minute() -> None:
    lines: list[str] = []
    sink = logger.add(lines.append, format="{message}")
    loop = asyncio.get_running_loop()
    handler = LoopErrorLog()
    for _ in range(500):
        handler(loop, {"message": "socket.accept() out of system resource", "exception": OSError(24, "too many")})
    logger.remove(sink)
    assert len(lines) == 1
    assert "too many" in lines[0]
