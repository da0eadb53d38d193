"""What the unit promises to systemd, kept by the real daemon: ready, alive, stopping, gone in time."""

from __future__ import annotations

import shlex
import signal
import subprocess
import time
from pathlib import Path

from tests.cli.conftest import command
from tests.support.daemon_process import DaemonProcess
from tests.support.service_manager import ServiceManager
from tests.support.waiting import eventually


def setting(unit: str, name: str) -> str:
    return next(line.partition("=")[2] for line in unit.splitlines() if line.startswith(f"{name}="))


def test_the_daemon_keeps_what_its_unit_promises(tmp_path: Path) -> None:
    home = DaemonProcess(config="shutdown: {drain_s: 1, timeout_s: 10}\n")
    unit = home.hermes("service", "install", "--print").stdout
    with ServiceManager(tmp_path / "notify") as manager:
        environ = {
            **home._environ,
            "NOTIFY_SOCKET": str(manager.path),
            "WATCHDOG_USEC": str(1_000_000),  # shorter than the unit's, so that a test can wait for it
        }
        assert shlex.split(setting(unit, "ExecStart"))[-4:] == ["-P", "-m", "hermes.cli.main", "daemon"]
        with subprocess.Popen(command("daemon"), env=environ, stdout=subprocess.DEVNULL) as daemon:
            try:
                eventually(lambda: "READY=1" in manager.heard and manager.heard.count("WATCHDOG=1") >= 2)
                began = time.monotonic()
                daemon.send_signal(signal.SIGTERM)
                eventually(lambda: "STOPPING=1" in manager.heard)
                assert daemon.wait(float(setting(unit, "TimeoutStopSec"))) == 0
                assert time.monotonic() - began < float(setting(unit, "TimeoutStopSec"))
            finally:
                daemon.kill()
    (home.home / "config.yaml").write_text("shutdwon: {}\n")
    assert str(home.hermes("daemon").returncode) in setting(unit, "RestartPreventExitStatus").split()
    home.__exit__(None, None, None)
