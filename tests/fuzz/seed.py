"""State for the fuzzer: sessions, runs, responses, questions and processes, so that ids in paths mean something."""

from __future__ import annotations

import json

from tests.support.daemon_process import DaemonProcess
from tests.support.waiting import eventually

Ids = dict[str, list[str]]


def seed(daemon: DaemonProcess, copies: int) -> Ids:
    """Create the state and return the ids by kind."""
    for name in ("talk", "long"):
        for number in range(3):
            daemon.ask(f"!echo {number}", session=name)
    waiting = [_waiting_run(daemon, number) for number in range(copies)]
    waiting += [_approval_run(daemon, number) for number in range(copies)]
    for number in range(copies):
        daemon.ask(f"!echo {number}", session=f"gone{number}")
        _background(daemon, number)
    processes = eventually(lambda: _processes(daemon, copies))
    return {
        "sessions": ["talk", "long", *(f"gone{number}" for number in range(copies))],
        "runs": [*waiting, *(_run(daemon, f"!echo {number}") for number in range(2))],
        "approvals": eventually(lambda: _approvals(daemon)),
        "responses": [_response(daemon, f"!echo {number}") for number in range(copies)],
        "processes": processes,
        "models": ["hermes"],
    }


def _run(daemon: DaemonProcess, text: str, session: str | None = None) -> str:
    body = {"input": text, **({"session_id": session} if session else {})}
    return str(daemon.request("POST", "/v1/runs", body).json()["run_id"])


def _waiting_run(daemon: DaemonProcess, number: int) -> str:
    question = json.dumps({"question": f"Which, {number}?", "choices": ["a", "b"]})
    return _run(daemon, f"!tool clarify {question}\n!echo done", f"asks{number}")


def _approval_run(daemon: DaemonProcess, number: int) -> str:
    call = json.dumps({"command": f"rm -rf {daemon.home}/nothing{number}"})
    return _run(daemon, f"!tool terminal {call}\n!echo done", f"dares{number}")


def _response(daemon: DaemonProcess, text: str) -> str:
    return str(daemon.request("POST", "/v1/responses", {"input": text}).json()["id"])


def _background(daemon: DaemonProcess, number: int) -> None:
    call = json.dumps({"command": "echo ready; sleep 3600", "background": True})
    daemon.ask(f"!tool terminal {call}\n!echo started", session=f"works{number}")


def _processes(daemon: DaemonProcess, count: int) -> list[str]:
    found = daemon.request("GET", "/api/processes").json()["processes"]
    return [each["id"] for each in found] if len(found) >= count else []


def _approvals(daemon: DaemonProcess) -> list[str]:
    return [each["id"] for each in daemon.request("GET", "/api/approvals").json()["approvals"]]
