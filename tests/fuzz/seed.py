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
    approvals = eventually(lambda: _approvals(daemon, 2 * copies))
    return {
        "asking_sessions": [_asking_session(daemon, number) for number in range(copies, 2 * copies)],
        "asking_runs": [_approval_run(daemon, number) for number in range(copies, 2 * copies)],
        "sessions": ["talk", "long", *(f"gone{number}" for number in range(copies))],
        "runs": [*waiting, *(_run(daemon, f"!echo {number}") for number in range(2))],
        "approvals": approvals,
        "responses": [_response(daemon, f"!echo {number}") for number in range(copies)],
        "processes": processes,
        "models": ["hermes"],
        "files": [_file(daemon, number) for number in range(copies)],
    }


def _run(daemon: DaemonProcess, text: str, session: str | None = None) -> str:
    body = {"input": text, **({"session_id": session} if session else {})}
    return str(daemon.request("POST", "/v1/runs", body).json()["run_id"])


def _waiting_run(daemon: DaemonProcess, number: int) -> str:
    question = json.dumps({"question": f"Which, {number}?", "choices": ["a", "b"]})
    return _run(daemon, f"!tool clarify {question}\n!echo done", f"asks{number}")


def _approval_run(daemon: DaemonProcess, number: int) -> str:
    call = json.dumps({"command": f"git push --force origin branch{number}"})  # there is no repository
    return _run(daemon, f"!tool terminal {call}\n!echo done", f"dares{number}")


def _response(daemon: DaemonProcess, text: str) -> str:
    return str(daemon.request("POST", "/v1/responses", {"input": text}).json()["id"])


def _file(daemon: DaemonProcess, number: int) -> str:
    form = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{number}.txt"\r\n\r\nhello\r\n--x--\r\n'
    kind = "multipart/form-data; boundary=x"
    return str(daemon.request("POST", "/v1/files", form.encode(), Content_Type=kind).json()["id"])


def _background(daemon: DaemonProcess, number: int) -> None:
    call = json.dumps({"command": "echo ready; sleep 3600", "background": True})
    daemon.ask(f"!tool terminal {call}\n!echo started", session=f"works{number}")


def _processes(daemon: DaemonProcess, count: int) -> list[str]:
    found = daemon.request("GET", "/api/processes").json()["processes"]
    return [each["id"] for each in found] if len(found) >= count else []


def _asking_session(daemon: DaemonProcess, number: int) -> str:
    _waiting_run(daemon, number)
    return f"asks{number}"


def _approvals(daemon: DaemonProcess, count: int) -> list[str]:
    found = daemon.request("GET", "/api/approvals").json()["approvals"]
    return [each["id"] for each in found] if len(found) >= count else []
