"""The network of a background command in the sandbox, with the real daemon."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.integration.test_processes import start, tool
from tests.sandbox.boxes import working_sandbox
from tests.support.daemon_process import DaemonProcess
from tests.support.waiting import eventually

PROXY = "http://127.0.0.1:3128"
ASK = f"curl -s -o /dev/null -m 5 -w '%{{http_code}}\\n' -x {PROXY} http://not-listed.example/"

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def daemon() -> Iterator[DaemonProcess]:
    if not shutil.which("curl"):
        pytest.skip("no curl here")
    working_sandbox()
    with DaemonProcess(environ={"HERMES_SANDBOX_MODE": "auto"}) as daemon:
        yield daemon
        daemon.end_processes()


def test_proxy_answers_again_after_the_daemon_was_killed(daemon: DaemonProcess) -> None:
    name = start(daemon, "s", f"while sleep 0.1; do {ASK}; done")
    log = {"action": "log", "id": name, "limit": 40_000}
    eventually(lambda: "403" in tool(daemon, "s", "process", **log))
    daemon.kill()
    daemon.start()
    said = tool(daemon, "s", "process", **log)
    written = said.rpartition("bytes ")[2].split()[2]  # "[bytes FROM to UPTO of TOTAL]"
    eventually(lambda: "403" in tool(daemon, "s", "process", offset=int(written), **log))
