"""A person's day with the daemon: first words, streams, restarts, two clients at once."""

from __future__ import annotations

import http.client
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as daemon:
        yield daemon


def test_the_curl_line_that_the_daemon_prints_works_when_pasted(daemon: DaemonProcess) -> None:
    assert daemon.process is not None
    assert daemon.process.stdout is not None
    lines = iter(lambda: daemon.process.stdout.readline().decode(), "")  # type: ignore[union-attr]
    first = next(line for line in lines if line.lstrip().startswith("Try"))
    pasted = first.replace("Try", "", 1) + next(lines) + next(lines)
    done = subprocess.run(["bash", "-c", pasted], capture_output=True, text=True, check=True, timeout=30)
    assert '"chat.completion"' in done.stdout
    assert "offline" in done.stdout


def test_the_openai_client_talks_plain_and_streamed_and_goes_on_after_a_restart(daemon: DaemonProcess) -> None:
    openai = pytest.importorskip("openai")
    session = {"X-Hermes-Session-Id": "my-chat"}

    def talk(text: str, *, stream: bool = False) -> str:
        with openai.OpenAI(base_url=f"{daemon.address}/v1", api_key=daemon.key, max_retries=0) as client:
            messages = [{"role": "user", "content": text}]
            reply = client.chat.completions.create(
                model="hermes", messages=messages, stream=stream, extra_headers=session
            )
            if not stream:
                return str(reply.choices[0].message.content)
            return "".join(chunk.choices[0].delta.content or "" for chunk in reply if chunk.choices)

    assert "first words" in talk("first words")
    assert "second words" in talk("second words", stream=True)
    assert daemon.terminate() == 0
    daemon.start()
    history = talk("!history")
    assert "first words" in history
    assert "second words" in history
    daemon.kill()
    daemon.start()
    assert "first words" in talk("!history", stream=True)


def test_two_requests_on_one_session_take_turns(daemon: DaemonProcess) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: daemon.ask(f"!echo number {n}", session="shared").text, range(8)))
    assert sorted(answers) == [f"number {n}" for n in range(8)]
    history = daemon.ask("!history", session="shared").text.splitlines()
    roles = [line.split()[1].strip(":") for line in history if line[:1].isdigit()]
    assert roles == ["user", "assistant"] * 8 + ["user"]


def test_a_request_without_a_session_brings_its_own_history_and_becomes_a_session(daemon: DaemonProcess) -> None:
    messages = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
        {"role": "user", "content": "!history"},
    ]
    answer = daemon.request("POST", "/v1/chat/completions", {"model": "hermes", "messages": messages})
    assert all(word in answer.text for word in ("one", "two"))
    assert "one" in daemon.ask("!history", session=answer.session).text


def test_the_same_idempotency_key_is_one_turn_also_after_a_crash(daemon: DaemonProcess) -> None:
    first = daemon.ask("!count", session="once", Idempotency_Key="k-1")
    again = daemon.ask("!count", session="once", Idempotency_Key="k-1")
    daemon.kill()
    daemon.start()
    after_crash = daemon.ask("!count", session="once", Idempotency_Key="k-1")
    assert first.text == again.text == after_crash.text
    assert daemon.ask("!count", session="once", Idempotency_Key="k-2").text != first.text

    other = daemon.ask("something else", session="once", Idempotency_Key="k-1")
    assert other.status == 422
    assert other.json()["error"]["code"] == "idempotency_mismatch"


def test_a_turn_cut_off_by_a_crash_is_finished_after_the_start_and_answered_once(daemon: DaemonProcess) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(daemon.ask, "!slow 8", "cut", Idempotency_Key="slow-1")
        eventually(
            lambda: daemon.admin.get("/sessions/cut")["session"]["phase"] == "running" if _has(daemon) else False
        )
        daemon.kill()
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            waiting.result()
    daemon.start()
    answer = daemon.ask("!slow 8", session="cut", Idempotency_Key="slow-1")
    assert answer.status == 200
    roles = [m["role"] for m in daemon.admin.get("/sessions/cut")["transcript"]]
    assert roles == ["user", "assistant"]


def _has(daemon: DaemonProcess) -> bool:
    return any(session["id"] == "cut" for session in daemon.admin.get("/api/sessions")["sessions"])


def test_a_stop_marks_a_turn_in_flight_and_it_continues_after_the_start(
    daemon: DaemonProcess, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(daemon.ask, "!slow 12", "cut", Idempotency_Key="slow-2")
        eventually(lambda: _has(daemon))
        assert daemon.terminate() == 0
        outcome = waiting.exception() or waiting.result()
        assert getattr(outcome, "status", 503) >= 500
    daemon.start()
    assert daemon.ask("!slow 12", session="cut", Idempotency_Key="slow-2").status == 200
