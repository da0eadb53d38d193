"""The tests themselves do not depend on the signals that whoever starts them ignores."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli import fake_admin
from tests.cli.fake_admin import FakeAdmin, Stream

CHILD_IS_INTERRUPTED = """
import signal, subprocess, sys
def test_child_is_interrupted():
    script = "import time; print(1, flush=True); time.sleep(30)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=-1, stderr=-3) as child:
        child.stdout.readline()
        child.send_signal(signal.SIGINT)
        assert child.wait(20) == -signal.SIGINT
"""


def test_children_of_a_run_with_sigint_ignored_can_be_interrupted(tmp_path: Path) -> None:
    conftest = Path(__file__).with_name("conftest.py").read_text()
    tmp_path.joinpath("conftest.py").write_text(conftest)
    tmp_path.joinpath("test_child.py").write_text(CHILD_IS_INTERRUPTED)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:llmock", str(tmp_path)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    assert done.returncode == 0, done.stdout


def test_a_client_that_stays_does_not_hold_up_the_fake_daemon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_admin, "_CLOSE_S", 0.2)
    over = threading.Event()

    def parts() -> Iterator[bytes]:
        yield b"begun"
        over.wait(30)

    with FakeAdmin(tmp_path / "socket") as admin:
        admin.routes["GET /events"] = Stream(parts=parts())
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(tmp_path / "socket"))
        client.sendall(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(1)
        closing = threading.Thread(target=admin.close, daemon=True)
        closing.start()
        closing.join(10)
        closed = not closing.is_alive()
        over.set()
        client.close()
    assert closed
