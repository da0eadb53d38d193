"""Scripts that call tools, in the real daemon: one model round trip, limits, approvals, kills."""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.support.daemon_process import DaemonProcess

pytestmark = pytest.mark.timeout(180)

GONE = (urllib.error.URLError, http.client.HTTPException, OSError, AssertionError)
FIFTY = """
from hermes_tools import write_file, ToolCallError
for number in range(50):
    write_file(path=f"made-{number}.txt", content="text " * 40)
try:
    write_file(path="more.txt", content="x")
except ToolCallError as error:
    print("refused:", error)
print("made 50")
"""
THREE = """
from hermes_tools import terminal, write_file
write_file(path="one.txt", content="1")
terminal(command="echo two >> two.txt")
write_file(path="three.txt", content="3")
print("all three")
"""
POINTS = (
    "before InnerCalled",
    "after InnerCalled",
    "turn: about to run a tool",
    "script: about to call",
    "script: called",
    "turn: a tool has run",
)
OFTEN = (("script: about to call", "KILL"), ("script: called", "KILL"), ("after InnerCalled", "TERM"))
EVERY = [(point, sent) for point in POINTS for sent in ("KILL", "TERM")]


@pytest.fixture
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as daemon:
        yield daemon


def run(daemon: DaemonProcess, code: str, session: str) -> str:
    call = json.dumps({"code": code})
    with suppress(*GONE):
        return daemon.ask(f"!tool execute_code {call}", session, Idempotency_Key=session).text
    return ""


def used(daemon: DaemonProcess, session: str) -> int:
    found: dict[str, Any] = daemon.admin.get(f"/api/sessions/{session}")["session"]
    usage = found["usage"]
    return int(usage["prompt_tokens"]) + int(usage["completion_tokens"])


def test_fifty_calls_cost_one_round_trip_and_no_more_are_made() -> None:
    """Measured: the same work call by call takes fifty model calls and many times the tokens."""
    with DaemonProcess(environ={"HERMES_APPROVALS_MODE": "off"}) as daemon:
        answer = run(daemon, FIFTY, "script")
        assert "made 50" in answer
        assert "at most 50 calls" in answer
        assert "write_file 50" in answer
        content = json.dumps({"path": "by-hand.txt", "content": "text " * 40})
        daemon.ask("\n".join([f"!tool write_file {content}"] * 50 + ["!echo made 50"]), "direct")
        script, direct = used(daemon, "script"), used(daemon, "direct")
        print(f"execute_code: {script:,} tokens; call by call: {direct:,} tokens ({direct / script:.0f} times)")
        assert direct > 20 * script
        files = daemon.home / "work" / "script" / "files"
        assert len(list(files.glob("made-*.txt"))) == 50


def test_script_waits_for_an_approval_and_goes_on(daemon: DaemonProcess) -> None:
    code = 'from hermes_tools import terminal\nprint("said", terminal(command="echo ov""er; sudo -n true || true"))'
    question = run(daemon, code, "s")
    while "May I" in question and "sudo" not in question.partition("echo ov")[0]:
        assert "sudo -n true" in question
        question = daemon.ask("yes", "s").text
    assert "over" in question


@pytest.mark.parametrize(("point", "sent"), EVERY if os.environ.get("HERMES_TEST_EVERY") else OFTEN)
def test_interrupted_script_is_not_run_again_and_says_what_ran(point: str, sent: str) -> None:
    armed = {"HERMES_TEST_CRASH": point, "HERMES_TEST_CRASH_SIGNAL": sent, "HERMES_APPROVALS_MODE": "off"}
    with DaemonProcess(environ=armed) as daemon:
        first = run(daemon, THREE, "s")
        assert daemon.process is not None
        daemon.process.wait(40)
        daemon.kill()
        daemon.start({"HERMES_TEST_CRASH": ""})
        answer = first or run(daemon, THREE, "s")
        files = daemon.home / "work" / "s" / "files"
        made = {path.name for path in files.iterdir()} if files.is_dir() else set()
        assert "all three" in answer or "No recorded outcome" in answer
        if "all three" in answer:
            assert made == {"one.txt", "two.txt", "three.txt"}
        else:
            for name in ("one.txt", "three.txt"):
                done = f"write_file: {name}: done" in answer
                unknown = f"write_file: {name}: it began" in answer
                assert (name in made) if done else (unknown or name not in made)
        two = files / "two.txt"
        assert not two.exists() or two.read_text(encoding="utf-8") == "two\n"  # never twice
