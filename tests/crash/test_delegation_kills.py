"""Kill -9 and SIGTERM at each point of a delegation: the same subagents go on, and each result arrives once."""

from __future__ import annotations

import http.client
import json
import os
import threading
import urllib.error
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(180)

GONE = (urllib.error.URLError, http.client.HTTPException, OSError)
POINTS = (
    "before ChildStarted",
    "after ChildStarted",
    "turn: about to run a tool",
    "child: about to start",
    "after SessionStarted",
    "child: started",
    "child: about to report",
    "child: reported",
    "turn: a tool has run",
    "before ToolFinished",
    "after ToolFinished",
)
TASKS = {"tasks": [{"goal": f"!tool todo {{}}\n!echo result {name}"} for name in ("one", "two")]}


OFTEN = (("after ChildStarted", "KILL"), ("child: about to report", "KILL"), ("child: started", "TERM"))


EVERY = [(point, sent) for point in POINTS for sent in ("KILL", "TERM")]


@pytest.fixture
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess(environ={"HERMES_DELEGATION_MAX_CONCURRENT_CHILDREN": "5"}) as daemon:
        yield daemon


def children_of(daemon: DaemonProcess, parent: str) -> list[dict[str, Any]]:
    found = daemon.admin.get("/api/sessions?children=true&limit=100")["sessions"]
    return [each for each in found if (each.get("child") or {}).get("parent") == parent]


def delegate(daemon: DaemonProcess, tasks: dict[str, Any] = TASKS) -> str:
    with suppress(*GONE, AssertionError):  # a daemon that stops refuses to wait
        return daemon.ask(f"!tool delegate_task {json.dumps(tasks)}", "s", Idempotency_Key="k").text
    return ""


@pytest.mark.parametrize(("point", "sent"), EVERY if os.environ.get("HERMES_TEST_EVERY") else OFTEN)
def test_interrupted_delegation_goes_on_with_the_same_subagents(daemon: DaemonProcess, point: str, sent: str) -> None:
    daemon.kill()
    daemon.start({"HERMES_TEST_CRASH": point, "HERMES_TEST_CRASH_SIGNAL": sent})
    first = delegate(daemon)
    assert daemon.process is not None
    daemon.process.wait(40)
    daemon.kill()
    daemon.start({"HERMES_TEST_CRASH": ""})
    answer = first or delegate(daemon)  # a stop lets a turn finish that can
    assert answer.count("\nresult one\n") == answer.count("\nresult two\n") == 1
    children = children_of(daemon, "s")
    assert len(children) == 2
    eventually(lambda: all(each["phase"] == "ended" for each in children_of(daemon, "s")))
    assert daemon.ask("!echo over", "s").text == "over"


def test_research_over_five_subagents_survives_two_kills(daemon: DaemonProcess) -> None:
    """The story in docs/subagents.md."""
    topics = ("history", "prices", "rivals", "risks", "law")
    slow = {"tasks": [{"goal": f"!tool todo {{}}\n!slow {n + 1} {topic}"} for n, topic in enumerate(topics)]}
    asked = threading.Thread(target=delegate, args=(daemon, slow))
    asked.start()
    for _ in range(2):
        eventually(lambda: len(children_of(daemon, "s")) == 5)
        eventually(lambda: any(each["phase"] == "running" for each in children_of(daemon, "s")))
        daemon.kill()
        asked.join()
        daemon.start()
        asked = threading.Thread(target=delegate, args=(daemon, slow))
        asked.start()
    asked.join()
    answer = delegate(daemon, slow)  # the same message: its turn is not started again
    for number in range(1, 6):
        assert answer.count(f"## Task {number}:") == 1
        assert answer.count(f"This answer takes {number} seconds") == 1
    assert len(children_of(daemon, "s")) == 5
