"""Anthropic Messages and OpenAI Responses with the real daemon, before an implementation that others wrote."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.model_judge import Judge, breaks, fails, says

pytest.importorskip("llmock")
pytestmark = pytest.mark.timeout(120)

TEXT = "one two three four five six"
READS = {"type": "reply", "tool_calls": [{"name": "read_file", "arguments": {"path": "note.txt"}}]}
MODELS = {
    "messages": "provider: anthropic, name: claude-sonnet-4-5, base_url: {}/anthropic/v1",
    "responses": "provider: openai, protocol: responses, name: gpt-4o, base_url: {}/v1",
}


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with Judge(tmp_path_factory.mktemp("judge") / "log") as judge:
        yield judge


@pytest.fixture(scope="module", params=MODELS)
def daemon(
    request: pytest.FixtureRequest, judge: Judge, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[DaemonProcess]:
    folder = tmp_path_factory.mktemp("cwd")
    (folder / "note.txt").write_text("what the tool reads\n")
    model = MODELS[request.param].format(judge.address)
    config = (
        f"model: {{{model}, api_key_env: A_KEY, idle_timeout_s: 5}}\n"
        f"tools: {{api: [read_file], default: [read_file]}}\nterminal: {{cwd: {folder}}}\n"
    )
    with DaemonProcess(config=config, environ={"A_KEY": "sk-1"}) as daemon:
        yield daemon


def test_an_answer_and_a_tool_call_are_understood(daemon: DaemonProcess, judge: Judge) -> None:
    judge.script(READS, says("I read it"), says("and again"))
    answer = daemon.ask("read it", session="tools")
    assert answer.text == "I read it"
    assert answer.json()["usage"]["prompt_tokens"] > 0
    assert daemon.ask("and now?", session="tools").text == "and again"
    judge.verdict(faults=0)


def test_a_rate_limit_is_waited_for(daemon: DaemonProcess, judge: Judge) -> None:
    judge.script(fails(429, times=2, retry_after=0.5), says("at last"))
    assert daemon.ask("hello").text == "at last"
    assert judge.verdict(faults=2)["attempts"] == 3


@pytest.mark.parametrize("status", [400, 401, 403])
def test_what_cannot_pass_is_not_tried_again(daemon: DaemonProcess, judge: Judge, status: int) -> None:
    judge.script(fails(status, times=None))
    assert daemon.ask("hello").status in (400, 502)
    assert judge.verdict(faults=1)["attempts"] == 1


@pytest.mark.parametrize("kind", ["disconnect", "truncate", "malformed", "stall"])
def test_a_broken_stream_is_no_answer(daemon: DaemonProcess, judge: Judge, kind: str) -> None:
    judge.script({**says(TEXT), "times": 2}, breaks(kind, 3))
    assert daemon.ask("hello").text == TEXT
    assert judge.verdict(faults=1)["attempts"] == 2
