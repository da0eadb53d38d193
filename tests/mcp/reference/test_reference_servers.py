"""The official reference servers, driven through the real daemon by its offline model."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.free_port import free_port
from tests.support.waiting import eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
FOLDER = Path(os.environ.get("HERMES_TEST_MCP", "/nonexistent"))
MODULES = FOLDER / "node_modules" / "@modelcontextprotocol"
EVERYTHING = str(MODULES / "server-everything" / "dist" / "index.js")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not MODULES.is_dir():
        pytest.skip("the servers are not installed; run `make mcp`")
    folder = tmp_path_factory.mktemp("files")
    (folder / "a.txt").write_text("alpha\n")
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first commit"]):
        subprocess.run([*git, *command], check=True)
    return folder


@pytest.fixture(scope="module")
def ports() -> Iterator[dict[str, int]]:
    """Serve the everything server over both HTTP transports."""
    found = {"streamableHttp": free_port(), "sse": free_port()}
    servers = [
        subprocess.Popen(
            ["node", EVERYTHING, mode], env={**os.environ, "PORT": str(port)}, stderr=subprocess.PIPE, text=True
        )
        for mode, port in found.items()
    ]
    for server in servers:
        assert server.stderr is not None
        for line in server.stderr:
            if "listening on port" in line or "running on port" in line:
                break
    yield found
    for server in servers:
        server.terminate()
        server.communicate()


@pytest.fixture(scope="module")
def daemon(files: Path, ports: dict[str, int]) -> Iterator[DaemonProcess]:
    python = FOLDER / "python" / "bin"
    servers = {
        "every": {"command": "node", "args": [EVERYTHING, "stdio"], "trust": "full"},
        "http": {"url": f"http://127.0.0.1:{ports['streamableHttp']}/mcp", "trust": "full"},
        "sse": {"url": f"http://127.0.0.1:{ports['sse']}/sse", "transport": "sse", "trust": "full"},
        "files": {
            "command": "node",
            "args": [str(MODULES / "server-filesystem" / "dist" / "index.js"), str(files)],
            "trust": "full",
        },
        "git": {"command": str(python / "mcp-server-git"), "trust": "read_only"},
        "fetch": {"command": str(python / "mcp-server-fetch"), "trust": "full"},
    }
    with DaemonProcess(config=json.dumps({"mcp_servers": servers})) as daemon:
        for name in servers:
            assert daemon.admin.post(f"/mcp/servers/{name}/test", timeout_s=120)["tool_count"], name
        yield daemon


def call(daemon: DaemonProcess, tool: str, session: str | None = None, **given: Any) -> str:
    return daemon.ask(f"!tool {tool} {json.dumps(given)}", session).text


@pytest.mark.parametrize("server", ["every", "http", "sse"])
def test_everything_over_each_transport(daemon: DaemonProcess, server: str) -> None:
    assert "Echo: hello" in call(daemon, f"mcp__{server}__echo", message="hello")
    assert re.search(r"\b5\b", call(daemon, f"mcp__{server}__get-sum", a=2, b=3))
    assert "image/png" in call(daemon, f"mcp__{server}__get-tiny-image")
    assert "temperature" in call(daemon, f"mcp__{server}__get-structured-content", location="New York")
    done = call(daemon, f"mcp__{server}__trigger-long-running-operation", duration=1, steps=2)
    assert "completed" in done


def test_resources_and_prompts(daemon: DaemonProcess) -> None:
    listed = call(daemon, "mcp__every__list_resources")
    uri = re.search(r"demo://resource/static/\S+?(?=:\s)", listed)
    assert uri is not None
    assert call(daemon, "mcp__every__read_resource", uri=uri[0])
    assert "simple-prompt" in call(daemon, "mcp__every__list_prompts")
    assert "[user]" in call(daemon, "mcp__every__get_prompt", name="simple-prompt")


def test_model_call_of_the_server(daemon: DaemonProcess) -> None:
    assert "sampling result" in call(daemon, "mcp__every__trigger-sampling-request", prompt="hi", maxTokens=50)


def test_question_is_answered_by_a_command(daemon: DaemonProcess) -> None:
    answers: list[str] = []
    asking = Thread(target=lambda: answers.append(call(daemon, "mcp__every__trigger-elicitation-request", "asks")))
    asking.start()
    [question] = eventually(lambda: daemon.admin.get("/mcp/questions")["questions"])
    done = daemon.hermes("mcp", "answer", question["id"], "name=Ada; check=yes")
    assert done.returncode == 0, done.stderr
    asking.join(60)
    assert "Ada" in answers[0]


def test_environment_has_no_secrets(daemon: DaemonProcess) -> None:
    assert "HERMES_" not in call(daemon, "mcp__every__get-env")


def test_files_git_and_fetch(daemon: DaemonProcess, files: Path) -> None:
    assert "alpha" in call(daemon, "mcp__files__read_text_file", path=str(files / "a.txt"))
    assert "outside allowed directories" in call(daemon, "mcp__files__read_text_file", path="/etc/passwd")
    assert "first commit" in call(daemon, "mcp__git__git_log", repo_path=str(files))
    asked = daemon.ask(f'!tool mcp__git__git_create_branch {{"repo_path": "{files}", "branch_name": "b"}}', "branch")
    assert asked.json()["hermes"]["pending"]["kind"] == "approval"
    assert "not a public address" in call(daemon, "mcp__fetch__fetch", url=f"{daemon.address}/health")


def test_kill_in_a_call_leaves_no_process_and_no_recorded_outcome(daemon: DaemonProcess) -> None:
    text = '!tool mcp__every__trigger-long-running-operation {"duration": 60, "steps": 2}'
    body = {"message": text}
    daemon.ask("!echo hi", "killed")
    Thread(target=lambda: _ignore(daemon, body), daemon=True).start()
    every = eventually(lambda: _every(daemon) if _every(daemon)["pid"] and _every(daemon)["calls"] > 5 else None)
    time.sleep(0.5)  # the call is on its way to the server
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGKILL)
    daemon.kill()
    eventually(lambda: not Path(f"/proc/{every['pid']}").exists(), within_s=10)
    daemon.start()
    said = eventually(lambda: [each for each in _transcript(daemon) if each["role"] == "tool"])
    assert "No recorded outcome" in said[-1]["content"]


def _ignore(daemon: DaemonProcess, body: dict[str, str]) -> None:
    try:
        daemon.request("POST", "/api/sessions/killed/chat", body)
    except OSError:
        return


def _every(daemon: DaemonProcess) -> dict[str, Any]:
    return dict(next(each for each in daemon.admin.get("/mcp/servers")["servers"] if each["name"] == "every"))


def _transcript(daemon: DaemonProcess) -> list[dict[str, Any]]:
    return list(daemon.admin.get("/sessions/killed", tail=20)["transcript"])
