"""The sandbox with the real daemon: what tools reach, what is asked, and what survives kills."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path
from threading import Thread

import psutil
import pytest

from tests.integration.test_processes import process, tool
from tests.sandbox.boxes import working_sandbox
from tests.support.daemon_process import DaemonProcess
from tests.support.waiting import eventually


@pytest.fixture
def daemon() -> Iterator[DaemonProcess]:
    working_sandbox()
    with DaemonProcess(environ={"HERMES_SANDBOX_MODE": "auto"}) as daemon:
        yield daemon
        daemon.end_processes()


def suppressing(call: Callable[..., object], *arguments: object) -> None:
    """For a request that a kill cuts off."""
    with suppress(OSError, HTTPException):
        call(*arguments)


def running(mark: str) -> list[int]:
    listed = psutil.process_iter(["cmdline", "status"])
    living = (each for each in listed if each.info["status"] != psutil.STATUS_ZOMBIE)
    return [each.pid for each in living if mark in (each.info["cmdline"] or [])]


def test_status_says_that_tools_are_sandboxed(daemon: DaemonProcess) -> None:
    eventually(lambda: daemon.admin.info()["sandbox"].get("works") is True)
    assert daemon.admin.info()["sandbox"]["cause"] == "works"


def test_tools_see_their_directory_and_not_the_daemons(daemon: DaemonProcess) -> None:
    tool(daemon, "s", "write_file", path="where", content=f"{daemon.home}/api.key"[::-1])
    disguised = "h=$(rev where); cat $h; ls ${h%/*}"  # else the policy would refuse it
    said = tool(daemon, "s", "terminal", command=f"pwd; echo made > mine.txt; {disguised}")
    assert "/work/s/files" in said
    key = (daemon.home / "api.key").read_text().strip()
    assert key not in said
    assert "No such file" in said
    assert (daemon.home / "work" / "s" / "files" / "mine.txt").read_text() == "made\n"
    assert "1|made" in tool(daemon, "s", "read_file", path="mine.txt")
    assert key not in tool(daemon, "s", "read_file", path=str(daemon.home / "api.key"))
    assert "mine.txt:1:made" in tool(daemon, "s", "search_files", pattern="made")


def test_tmp_and_home_last_as_long_as_the_conversation(daemon: DaemonProcess) -> None:
    tool(daemon, "s", "terminal", command="echo 1 > /tmp/x; echo 2 > ~/y; cd /tmp")
    daemon.kill()
    daemon.start()
    assert "1\n2\n/tmp" in tool(daemon, "s", "terminal", command="cat /tmp/x ~/y; pwd")
    assert "No such file" in tool(daemon, "other", "terminal", command="cat /tmp/x")


def test_leaving_the_sandbox_is_asked_about_and_then_done(daemon: DaemonProcess, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    command = f"touch {outside}"
    assert "No such file" in tool(daemon, "s", "terminal", command=command)
    asking = Thread(
        target=daemon.ask,
        args=(f'!tool terminal {{"command": "{command}", "outside_sandbox": true}}\n!echo over', "s"),
        daemon=True,
    )
    asking.start()
    eventually(lambda: "outside the sandbox" in daemon.admin.get("/sessions/s")["why"])
    assert not outside.exists()
    daemon.admin.post("/api/sessions/s/answer", {"answer": "once"})
    eventually(outside.exists)


def test_a_kill_of_the_daemon_ends_its_commands(daemon: DaemonProcess) -> None:
    request = '!tool terminal {"command": "sleep 1017.25 & setsid sleep 1017.25; :"}'
    Thread(target=suppressing, args=(daemon.ask, request, "s"), daemon=True).start()
    eventually(lambda: len(running("1017.25")) == 2)
    daemon.kill()
    eventually(lambda: not running("1017.25"))


def test_a_background_command_survives_a_kill_and_ends_as_a_whole(daemon: DaemonProcess) -> None:
    command = "trap 'echo bye; exit 4' TERM; echo up; sleep 1018.25 & wait"
    said = tool(daemon, "s", "terminal", command=command, background=True)
    found = re.search(r"proc_[0-9a-f]{12}", said)
    assert found, said
    eventually(lambda: bool(running("1018.25")))
    daemon.kill()
    daemon.start()
    assert running("1018.25")
    assert process(daemon, found[0])["running"]
    assert "up" in tool(daemon, "s", "process", action="log", id=found[0])
    tool(daemon, "s", "process", action="kill", id=found[0])
    eventually(lambda: not running("1018.25"))
    assert "bye" in tool(daemon, "s", "process", action="log", id=found[0]), "it was asked politely"


def test_the_network_is_refused_by_name_and_said(daemon: DaemonProcess) -> None:
    port = daemon.address.rpartition(":")[2].strip("/")
    curl = "curl -s -m 5 -o /dev/null -w '%{http_code}' http://not-listed.example/"
    tool(daemon, "s", "write_file", path="port", content=port)
    said = tool(daemon, "s", "terminal", command=f"{curl}; (: </dev/tcp/127.0.0.1/$(cat port))")
    assert "403" in said
    assert "network_hosts" in said
    assert "Connection refused" in said, "the daemon's own port is not there"


def test_end_of_a_command_costs_little(daemon: DaemonProcess) -> None:
    """Not a benchmark: it guards against waiting for processes that are gone already (90 ms once)."""
    tool(daemon, "s", "terminal", command=":")
    began = time.monotonic()
    for _ in range(5):
        tool(daemon, "s", "terminal", command=":")
    assert time.monotonic() - began < 10


def test_without_bubblewrap_it_says_so_first(tmp_path: Path) -> None:
    with DaemonProcess(environ={"HERMES_SANDBOX_MODE": "auto", "PATH": str(tmp_path)}) as daemon:
        eventually(lambda: bool(daemon.admin.info()["sandbox"]))
        found = daemon.admin.info()["sandbox"]
        assert (found["works"], found["cause"]) == (False, "not_installed")
        assert "bubblewrap" in found["remedy"]
