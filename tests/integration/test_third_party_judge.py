"""The real daemon before an independent judge: llmock plays the endpoint, breaks as told, and grades its client.

Its verdict has errors (a wait cut short, a retry that cannot help, a truncated stream taken for an answer) and
warnings (no backoff, giving up at once, no read timeout). Here neither is accepted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.model_judge import Judge, breaks, fails, says

pytest.importorskip("llmock")
pytestmark = pytest.mark.timeout(120)

IDLE_S = 5.0
SHORT = "one two three four five six"
LONG = " ".join(map(str, range(150)))  # an answer that went out whole before it was refused counts as taken


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with Judge(tmp_path_factory.mktemp("judge") / "log") as judge:
        yield judge


@pytest.fixture(scope="module")
def daemon(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("cwd")
    (folder / "note.txt").write_text("what the tool reads\n")
    # The judge calls any tool it is offered, with arguments that it makes up: it is offered one that only reads.
    config = (
        f'model: {{provider: openai, base_url: "{judge.address}/v1", name: gpt-4o, api_key_env: "", '
        f"idle_timeout_s: {IDLE_S}}}\ntools: {{api: [read_file], default: [read_file]}}\n"
        f"terminal: {{cwd: {folder}}}\n"
    )
    with DaemonProcess(config=config) as daemon:
        yield daemon


@pytest.fixture
def session(request: pytest.FixtureRequest, daemon: DaemonProcess, judge: Judge) -> Iterator[str]:
    """One for each test; whatever happened to it, it answers afterwards."""
    name = "s" + "".join(letter for letter in request.node.name if letter.isalnum())
    yield name
    judge.script(says("still there"))
    assert daemon.ask("are you?", session=name).text == "still there"


READS = {"type": "reply", "tool_calls": [{"name": "read_file", "arguments": {"path": "note.txt"}}]}
UNHARMED = breaks("stall", stall_seconds=0)  # takes the place of a fault in the first call of a turn


def test_a_rate_limit_is_waited_for(daemon: DaemonProcess, judge: Judge, session: str) -> None:
    judge.script(fails(429, times=2, retry_after=0.5), says("at last"))
    assert daemon.ask("hello", session=session).text == "at last"
    assert judge.verdict(faults=2)["attempts"] == 3


def test_what_may_pass_is_tried_again(daemon: DaemonProcess, judge: Judge, session: str) -> None:
    # Of three waits not all look the same to the judge; of two that are nearly the same, by chance, it complains.
    judge.script(fails(500), fails(529), fails(503), says("at last"))
    assert daemon.ask("hello", session=session).text == "at last"
    assert judge.verdict(faults=3)["attempts"] == 4


def test_an_outage_ends_in_one_error_after_growing_waits(daemon: DaemonProcess, judge: Judge, session: str) -> None:
    judge.script(fails(503, times=None))
    answer = daemon.ask("hello", session=session)
    assert (answer.status, answer.json()["error"]["code"]) == (503, "upstream_overloaded")
    assert judge.verdict(faults=4)["calls"] == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_what_cannot_pass_is_not_tried_again(daemon: DaemonProcess, judge: Judge, session: str, status: int) -> None:
    judge.script(fails(status, times=None))
    assert daemon.ask("hello", session=session).status in (400, 502)
    calls = 2 if status == 404 else 1  # the list of models is read to suggest similar names
    assert judge.verdict(faults=calls)["attempts"] == calls


def test_a_prompt_that_is_too_long_is_not_tried_again(daemon: DaemonProcess, judge: Judge, session: str) -> None:
    judge.script(fails(400, times=None, code="context_length_exceeded", message="maximum context length is 8192"))
    answer = daemon.ask("hello", session=session)
    assert (answer.status, answer.json()["error"]["code"]) == (400, "context_length_exceeded")
    assert judge.verdict(faults=1)["attempts"] == 1


@pytest.mark.parametrize(
    ("kind", "after_chunks"), [("disconnect", 0), ("disconnect", 3), ("truncate", 3), ("malformed", 3), ("stall", 3)]
)
def test_a_broken_stream_is_no_answer(
    daemon: DaemonProcess, judge: Judge, session: str, kind: str, after_chunks: int
) -> None:
    text = LONG if kind == "malformed" else SHORT
    judge.script({**says(text), "times": 2}, breaks(kind, after_chunks))
    assert daemon.ask("hello", session=session).text == text
    assert judge.verdict(faults=1)["attempts"] == 2


@pytest.mark.parametrize("kind", ["disconnect", "truncate", "malformed"])
def test_a_broken_stream_after_a_tool_call_is_no_answer(
    daemon: DaemonProcess, judge: Judge, session: str, kind: str
) -> None:
    text = LONG if kind == "malformed" else SHORT
    judge.script(READS, {**says(text), "times": 2}, UNHARMED, breaks(kind))
    assert daemon.ask("hello", session=session).text == text
    assert judge.verdict(faults=2)["calls"] == 2


@pytest.mark.parametrize("kind", ["disconnect", "truncate"])
def test_half_a_tool_call_is_not_run(daemon: DaemonProcess, judge: Judge, session: str, kind: str) -> None:
    judge.script({**READS, "times": 2}, says("I read it"), breaks(kind))
    assert daemon.ask("hello", session=session).text == "I read it"
    assert judge.verdict(faults=1)["calls"] == 2
    stored = json.dumps(daemon.request("GET", f"/api/sessions/{session}/messages").json())
    assert stored.count("what the tool reads") == 1


@pytest.mark.parametrize("kind", ["malformed_arguments", "unknown_tool"])
def test_model_gets_the_error_of_a_broken_tool_call(
    daemon: DaemonProcess, judge: Judge, session: str, kind: str
) -> None:
    judge.script({"type": "tool_fault", "kind": kind})
    assert daemon.ask("please read the file", session=session).text
    assert judge.verdict(faults=0)["calls"] == 2, "it does not count these among its faults"
    stored = json.dumps(daemon.request("GET", f"/api/sessions/{session}/messages").json())
    assert ("not valid JSON" if kind == "malformed_arguments" else "Unknown tool") in stored


@pytest.mark.parametrize("kind", ["delay", "slow_first_token"])
def test_slow_is_waited_for_and_too_slow_is_tried_again(
    daemon: DaemonProcess, judge: Judge, session: str, kind: str
) -> None:
    judge.script({"type": kind, "seconds": IDLE_S / 5}, says("slowly"))
    assert daemon.ask("hello", session=session).text == "slowly"
    assert judge.verdict(faults=0)["attempts"] == 1
    judge.script({"type": kind, "seconds": IDLE_S * 2}, {**says("at last"), "times": 2})
    assert daemon.ask("hello again", session=session).text == "at last"
