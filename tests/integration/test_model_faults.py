"""Every fault of a model endpoint, at the first model call of a turn and at a later one, against the real daemon.

A fault ends in another try or in one honest error; nothing that was cut off is stored as an answer; the next turn
works, and its transcript is one that every endpoint takes. The faults of the table are all suffered at the same time,
each by a session of its own; the tests look at what became of each.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon_process import Answer, DaemonProcess
from tests.support.free_port import free_port
from tests.support.model_server import CUT, DONE, STALL, Reply, delta, error, event, page, stream, usage
from tests.support.scripted_model import ScriptedModel, answered, calling, check_valid
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)

IDLE_S = 5.0  # longer than a busy machine stands still: all faults are suffered at the same time
TRIES = 4
NOTE = ("read_file", {"path": "note.txt"})
HALF = delta(content="half an ans")
GOOD = "all is well"


def calls(*made: dict[str, Any], finish: str = "tool_calls") -> Reply:
    return stream(delta(tool_calls=list(made)), delta(finish), usage(10, 5), DONE)


def call(index: int | None = 0, name: str = "read_file", arguments: Any = '{"path":"note.txt"}', **more: Any) -> Any:
    return {"index": index, "id": f"c{index}", "function": {"name": name, "arguments": arguments}, **more}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    replies: tuple[Reply, ...]  # one by one; then all is well
    lasting: bool = False  # the last of them again and again
    status: int = 200
    code: str = ""  # of the error that is told
    tries: int = 0  # how often the model is asked; 0: once for each reply and once more
    says: str = ""  # is in what the client is told, or in what the model is told of its calls

    @property
    def asked(self) -> int:
        return self.tries or len(self.replies) + 1


def passing(*replies: Reply) -> Fault:
    return Fault(replies=replies)


def lasting(reply: Reply, status: int, code: str, *, tries: int = TRIES, says: str = "") -> Fault:
    return Fault(replies=(reply,), lasting=True, status=status, code=code, tries=tries, says=says)


def mistaken(reply: Reply, says: str) -> Fault:
    return Fault(replies=(reply,), says=says)


FAULTS: dict[str, Fault] = {
    # passing: another try mends it
    "first token hangs": passing(stream(STALL)),
    "headers and no token": passing(stream(b": hello\n\n", STALL)),
    "stall in mid-stream": passing(stream(HALF, STALL)),
    "stall in a tool call": passing(stream(delta(tool_calls=[call(arguments='{"path"')]), STALL)),
    "429 with Retry-After": passing(error(429, retry_after="2")),
    "429 without": passing(error(429), error(429)),
    "408": passing(error(408)),
    "500 three times": passing(error(500), error(502), error(503)),
    "529": passing(error(529, kind="overloaded_error")),
    "HTML error page": passing(page(502)),
    "HTML page as an answer": passing(page(200)),
    "JSON instead of a stream": passing(Reply(headers={"Content-Type": "application/json"}, parts=(b"{}",))),
    "cut in mid-text": passing(stream(HALF, CUT)),
    "cut before the headers": passing(stream(CUT)),
    "EOF without an end": passing(stream(HALF)),
    "no finish reason": passing(stream(HALF, DONE)),
    "nothing at all": passing(stream()),
    "only [DONE]": passing(stream(DONE)),
    "bad JSON": passing(stream(HALF, b"data: {nonsense\n\n", delta("stop"), DONE)),
    "chunk of a wrong shape": passing(stream(HALF, b"data: [1]\n\n", delta("stop"), DONE)),
    "bad UTF-8 over two chunks": passing(
        stream(b'data: {"choices":[{"index":0,"delta":{"content":"\xe2\x82', b'"}}]}\n\n', delta("stop"), DONE)
    ),
    "10 MB chunk": passing(stream(delta(content="x" * 10_000_000), delta("stop"), DONE)),
    "endless answer": passing(stream(*[delta(content="y" * 65_536)] * 100, STALL)),
    "empty answer": passing(stream(delta(content=" \n"), delta("stop"), DONE)),
    "tool_calls without calls": passing(stream(HALF, delta("tool_calls"), DONE)),
    "finish reason error": passing(stream(HALF, delta("error"), DONE)),
    "error in the stream": passing(stream(HALF, event({"error": {"message": "overloaded", "code": 503}}))),
    # lasting: one honest error
    "500 for ever": lasting(error(500), 503, "upstream_overloaded"),
    "429 for ever": lasting(error(429), 429, "rate_limit_exceeded"),
    "429 for an hour": lasting(error(429, retry_after="3600"), 429, "rate_limit_exceeded", tries=1),
    "stalls for ever": lasting(stream(HALF, STALL), 504, "upstream_timeout"),
    "cut for ever": lasting(stream(HALF, CUT), 502, "upstream_connection"),
    "truncated for ever": lasting(stream(HALF, DONE), 502, "upstream_malformed_reply", says="incomplete"),
    "empty for ever": lasting(stream(delta("stop"), DONE), 502, "upstream_malformed_reply", says="empty"),
    "401": lasting(error(401), 502, "upstream_auth", tries=1, says="model.api_key_env"),
    "402": lasting(error(402), 502, "upstream_billing", tries=1, says="balance"),
    "quota": lasting(error(429, code="insufficient_quota"), 502, "upstream_billing", tries=1),
    "404": lasting(error(404, code="model_not_found"), 400, "upstream_bad_request", tries=1, says="model.name"),
    "413": lasting(error(413), 400, "context_length_exceeded", tries=1, says="nothing was lost"),
    "overflow": lasting(
        error(400, code="context_length_exceeded"), 400, "context_length_exceeded", tries=1, says="nothing was lost"
    ),
    "content filter": lasting(stream(HALF, delta("content_filter"), DONE), 400, "content_filter", tries=1),
    "content filter by status": lasting(error(400, code="content_filter"), 400, "content_filter", tries=1),
    "key refused in the stream": lasting(
        stream(event({"error": {"message": "no", "code": "invalid_api_key"}})), 502, "upstream_auth", tries=1
    ),
    # answers with calls that cannot be run, or only just
    "unknown tool": mistaken(calls(call(name="read_fil")), "Did you mean read_file?"),
    "a name that no tool has": mistaken(calls(call(name="read file/now!")), "Unknown tool"),
    "no name": mistaken(calls(call(name="")), "Unknown tool"),
    "arguments that are not JSON": mistaken(calls(call(arguments='{"path": note')), "not valid JSON"),
    "arguments with NaN": mistaken(calls(call(arguments='{"path": "note.txt", "limit": NaN}')), "limit"),
    "arguments with half a character": mistaken(calls(call(arguments='{"path": "\\ud800"}')), "surrogate"),
    "arguments in a list": mistaken(calls(call(arguments='["note.txt"]')), "must be a JSON object"),
    "arguments of wrong types": mistaken(calls(call(arguments='{"path": 5}')), "path"),
    "arguments missing": mistaken(calls(call(arguments="")), "'path' is missing"),
    "arguments as an object": mistaken(calls(call(arguments={"path": "note.txt"})), "what the tool reads"),
    "duplicate ids": mistaken(calls(call(0, id="same"), call(1, id="same")), "what the tool reads"),
    "empty ids": mistaken(calls(call(0, id=""), call(1, id=None)), "what the tool reads"),
    "one index for all": mistaken(calls(call(0, id="a"), call(0, id="b"), call(0, id="c")), "what the tool reads"),
    "no index": mistaken(calls(call(None, id="a"), call(None, id="b")), "what the tool reads"),
    "40 calls at once": mistaken(calls(*[call(number) for number in range(40)]), "what the tool reads"),
    "calls and finish reason stop": mistaken(calls(call(), finish="stop"), "what the tool reads"),
    "call cut by length": mistaken(calls(call(arguments='{"path": "note'), finish="length"), "length limit"),
    "call cut before its arguments": mistaken(
        calls(call(name="todo", arguments=""), finish="length"), "length limit"
    ),
}
CALLS = {"duplicate ids": 2, "empty ids": 2, "one index for all": 3, "no index": 2, "40 calls at once": 40}


class FaultyModel:
    """Plays the fault that a person's last message names: `early NAME` at once, `late NAME` after a tool call."""

    def __init__(self, model: ScriptedModel) -> None:
        self.requests: dict[str, list[dict[str, Any]]] = defaultdict(list)  # of the faulty calls and the one after
        self.times: dict[str, list[float]] = defaultdict(list)
        model.on_request = self.reply

    def reply(self, body: dict[str, Any]) -> Reply | None:
        said = next((m["content"] for m in reversed(body["messages"]) if m["role"] == "user"), "")
        where, _, name = str(said).partition(" ")
        if where not in ("early", "late") or name not in FAULTS:
            return None
        if where == "late" and body["messages"][-1]["role"] == "user":
            return calling(10, NOTE)
        fault, asked = FAULTS[name], self.requests[str(said)]
        self.times[str(said)].append(time.monotonic())
        asked.append(body)
        if len(asked) > len(fault.replies) and not fault.lasting:
            return answered(GOOD)
        return fault.replies[min(len(asked), len(fault.replies)) - 1]


@dataclass(slots=True, kw_only=True)
class Story:
    """What became of one fault."""

    outcome: Answer
    again: Answer  # the same request once more
    after: Answer
    shown: list[dict[str, Any]]  # to the model, in the turn after
    stored: list[dict[str, Any]]
    requests: list[dict[str, Any]]
    times: list[float]


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture(scope="module")
def stories(model: ScriptedModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Story]]:
    folder = tmp_path_factory.mktemp("cwd")
    (folder / "note.txt").write_text("what the tool reads\n")
    faulty = FaultyModel(model)
    said = [f"{where} {name}" for where in ("early", "late") for name in FAULTS]
    with DaemonProcess(config=config_of(model, folder)) as daemon, ThreadPoolExecutor(48) as pool:
        yield dict(zip(said, pool.map(lambda text: suffer(daemon, model, faulty, text), said), strict=True))
        assert "Traceback" not in daemon.stderr()


def config_of(model: ScriptedModel, folder: Path) -> str:
    endpoint = model.config.replace("idle_timeout_s: 5", f"idle_timeout_s: {IDLE_S}")
    return f"{endpoint}terminal: {{cwd: {folder}}}\n"


def suffer(daemon: DaemonProcess, model: ScriptedModel, faulty: FaultyModel, text: str) -> Story:
    session = text.replace(" ", "-").replace("[", "").replace("]", "")
    outcome = daemon.ask(text, session=session, Idempotency_Key=session)
    requests = list(faulty.requests[text])
    again = daemon.ask(text, session=session, Idempotency_Key=session)
    assert len(faulty.requests[text]) == len(requests), "the same request again is no new turn"
    after = daemon.ask(f"say after {text}", session=session)
    shown = next(body for body in reversed(model.requests) if body["messages"][-1]["content"] == f"say after {text}")
    stored = daemon.request("GET", f"/api/sessions/{session}/messages").json()["messages"]
    return Story(
        outcome=outcome,
        again=again,
        after=after,
        shown=shown["messages"],
        stored=stored,
        requests=requests,
        times=faulty.times[text],
    )


everywhere = pytest.mark.parametrize("where", ["early", "late"])


@everywhere
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_ends_in_another_try_or_in_one_honest_error(stories: dict[str, Story], where: str, name: str) -> None:
    fault, story = FAULTS[name], stories[f"{where} {name}"]
    assert story.outcome.status == fault.status, story.outcome.body
    if fault.code:
        problem = story.outcome.json()["error"]
        assert problem["code"] == fault.code
        assert fault.says in problem["message"]
    else:
        assert story.outcome.text == GOOD
    assert len(story.requests) == fault.asked
    assert story.again.status == story.outcome.status
    assert _told(story.again) == _told(story.outcome)


def _told(answer: Answer) -> str:
    return answer.text if answer.status == 200 else str(answer.json()["error"]["code"])


@everywhere
@pytest.mark.parametrize("name", FAULTS)
def test_the_session_stays_usable_and_holds_nothing_that_was_cut_off(
    stories: dict[str, Story], where: str, name: str
) -> None:
    story = stories[f"{where} {name}"]
    assert story.after.text == f"after {where} {name}"
    for body in (*story.requests, {"messages": story.shown}):
        check_acceptable(body["messages"])
    kept = json.dumps([story.stored, story.shown])
    assert "half an ans" not in kept
    assert "yyyy" not in kept
    assert "xxxx" not in kept


def check_acceptable(messages: list[dict[str, Any]]) -> None:
    """Valid, and every call in a form that strict endpoints take as well."""
    check_valid(messages)
    for message in messages:
        for made in message.get("tool_calls") or ():
            assert made["id"]
            assert made["function"]["name"].replace("_", "").replace("-", "").isalnum(), made
            assert isinstance(json.loads(made["function"]["arguments"], parse_constant=pytest.fail), dict)
            json.dumps(json.loads(made["function"]["arguments"]), ensure_ascii=False).encode()


@everywhere
@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.says and not fault.code])
def test_what_is_wrong_with_a_call_is_told_to_the_model_and_what_can_run_runs(
    stories: dict[str, Story], where: str, name: str
) -> None:
    messages = stories[f"{where} {name}"].requests[-1]["messages"]
    last = max(number for number, message in enumerate(messages) if message["role"] == "assistant")
    results = [message["content"] for message in messages[last + 1 :] if message["role"] == "tool"]
    assert len(results) == CALLS.get(name, 1)
    assert all(FAULTS[name].says in result for result in results), results


@everywhere
def test_the_wait_that_was_asked_for_is_kept(stories: dict[str, Story], where: str) -> None:
    before, after = stories[f"{where} 429 with Retry-After"].times
    assert 2.0 <= after - before < 20.0
    hour = stories[f"{where} 429 for an hour"].outcome
    assert int(hour.headers["Retry-After"]) == 3600, "who asks is told, instead of kept waiting"


@everywhere
def test_waits_grow_from_try_to_try(stories: dict[str, Story], where: str) -> None:
    first, second, third, fourth = stories[f"{where} 500 for ever"].times
    assert second - first >= 0.5
    assert third - second >= 1.0
    assert fourth - third >= 2.0


@everywhere
def test_a_stall_is_noticed_by_the_idle_timeout(stories: dict[str, Story], where: str) -> None:
    for name in ("first token hangs", "headers and no token", "stall in mid-stream", "stall in a tool call"):
        before, after = stories[f"{where} {name}"].times
        assert IDLE_S <= after - before < IDLE_S + 20.0, name


# ---------------------------------------------------------------- nobody there


@contextlib.contextmanager
def dead_end(port: int) -> Iterator[None]:
    """A port that takes no connection and refuses none: its backlog is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(0)
        for _ in range(4):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", port))
        yield


@contextlib.contextmanager
def closed_door(port: int) -> Iterator[None]:
    yield


@pytest.mark.parametrize(
    ("absence", "connect_s", "status", "code"),
    [(closed_door, 20, 502, "upstream_connection"), (dead_end, 0.5, 504, "upstream_timeout")],
)
def test_unreachable_address_fails_one_turn_only(
    tmp_path: Path, absence: Any, connect_s: float, status: int, code: str
) -> None:
    port = free_port()
    config = (
        f'model: {{provider: openai, base_url: "http://127.0.0.1:{port}/v1", name: m, api_key_env: "", '
        f"connect_timeout_s: {connect_s}}}\nterminal: {{cwd: {tmp_path}}}\n"
    )
    wait = "touch began; until [ -e go ]; do sleep 0.05; done; echo went on"
    with DaemonProcess(config=config) as daemon, ThreadPoolExecutor(2) as pool:
        with ScriptedModel(port=port):
            late = pool.submit(daemon.ask, f"run {wait}", "late")
            eventually((tmp_path / "began").exists)
        with absence(port):
            early = pool.submit(daemon.ask, "say early", "early")
            (tmp_path / "go").touch()
            for turn in (early, late):
                refused = turn.result()
                assert (refused.status, refused.json()["error"]["code"]) == (status, code)
        with ScriptedModel(port=port) as model:
            assert daemon.ask("say there", session="early").text == "there"
            check_acceptable(model.requests[-1]["messages"])
            assert daemon.ask("say there", session="late").text == "there"
            check_acceptable(model.requests[-1]["messages"])
            assert "went on" in json.dumps(model.requests[-1]), "what the tool did is not lost"


# ---------------------------------------------------------------- fallbacks


@dataclass(slots=True)
class Downtime:
    """Refuses everything while it is down."""

    reply: Reply = field(default_factory=lambda: error(401))
    down: bool = True

    def __call__(self, body: dict[str, Any]) -> Reply | None:
        return self.reply if self.down else None


def asked(model: ScriptedModel) -> int:
    return len(model.requests)


@pytest.mark.parametrize("reply", [error(401), error(404, code="model_not_found"), error(429, retry_after="600")])
def test_a_fallback_with_its_own_address_and_key_answers_and_the_next_turn_asks_the_first_again(
    tmp_path: Path, reply: Reply
) -> None:
    (tmp_path / "note.txt").write_text("what the tool reads\n")
    with ScriptedModel() as first, ScriptedModel() as second:
        trouble = first.on_request = Downtime(reply)
        environ = {
            "HERMES_MODEL_FALLBACKS": f"other@{second.server.base_url}#OTHER_KEY",
            "HERMES_MODEL_API_KEY_ENV": "FIRST_KEY",
            "HERMES_TERMINAL_CWD": str(tmp_path),
            "FIRST_KEY": "first-secret",
            "OTHER_KEY": "other-secret",
        }
        with DaemonProcess(config=first.config, environ=environ) as daemon:
            answer = daemon.ask('call read_file {"path": "note.txt"}', session="s")
            assert "what the tool reads" in answer.text
            assert (asked(first), asked(second)) == (1, 2), "a turn goes on with the one that answered it"
            assert {headers["Authorization"] for headers in first.server.headers} == {"Bearer first-secret"}
            assert {headers["Authorization"] for headers in second.server.headers} == {"Bearer other-secret"}
            assert {body["model"] for body in second.requests} == {"other"}
            assert daemon.ask("say second turn", session="s").text == "second turn"
            assert (asked(first), asked(second)) == (2, 3)
            trouble.down = False
            assert daemon.ask("say third turn", session="s").text == "third turn"
            assert (asked(first), asked(second)) == (3, 3)
            check_acceptable(first.requests[-1]["messages"])


def test_when_the_whole_chain_fails_there_is_one_error_that_names_them(tmp_path: Path) -> None:
    with ScriptedModel() as first, ScriptedModel() as second:
        first.on_request, second.on_request = Downtime(error(401)), Downtime(error(402))
        environ = {"HERMES_MODEL_FALLBACKS": f"other@{second.server.base_url}"}
        with DaemonProcess(config=first.config, environ=environ) as daemon:
            answer = daemon.ask("say something", session="s")
            assert answer.status == 502
            problem = answer.json()["error"]
            assert problem["code"] == "upstream_auth", "of the one that was asked first"
            assert "other: billing" in problem["message"]
            assert (asked(first), asked(second)) == (1, 1)
            second.on_request = lambda body: None
            assert daemon.ask("say works", session="s").text == "works"


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize(
    ("setting", "value"),
    [("SESSION_TOKENS", "30"), ("DAY_USD", "0.03")],
)
def test_a_budget_that_is_used_up_is_one_clear_error_and_no_call(setting: str, value: str) -> None:
    with ScriptedModel() as model:
        environ = {
            f"HERMES_BUDGET_{setting}": value,
            "HERMES_MODEL_PRICE_INPUT": "1000",
            "HERMES_MODEL_PRICE_OUTPUT": "1000",
        }
        with DaemonProcess(config=model.config, environ=environ) as daemon:
            for number in range(2):  # 15 tokens each
                assert daemon.ask(f"say {number}", session="s").text == str(number)
            refused = daemon.ask("say more", session="s")
            assert (refused.status, refused.json()["error"]["code"]) == (402, "budget_exceeded")
            assert f"budget.{setting.lower()}" in refused.json()["error"]["message"]
            assert asked(model) == 2
            other = daemon.ask("say other", session="other")
            assert other.status == (402 if setting.startswith("DAY") else 200)
            daemon.terminate()
            daemon.start({f"HERMES_BUDGET_{setting}": "0"})
            assert daemon.ask("say again", session="s").text == "again"
            check_acceptable(model.requests[-1]["messages"])


@pytest.mark.parametrize("obedient", [True, False])
def test_a_turn_that_never_ends_is_ended_and_says_so(tmp_path: Path, *, obedient: bool) -> None:
    (tmp_path / "note.txt").write_text("what the tool reads\n")

    def tools_for_ever(body: dict[str, Any]) -> Reply | None:
        said = str(body["messages"][-1]["content"])
        if said.startswith("say"):
            return None
        if obedient and "limit of 3 steps" in said:
            return answered("I read it three times.")
        return calling(10, NOTE)

    with ScriptedModel() as model:
        model.on_request = tools_for_ever
        environ = {"HERMES_AGENT_MAX_TURNS": "3", "HERMES_TERMINAL_CWD": str(tmp_path)}
        with DaemonProcess(config=model.config, environ=environ) as daemon:
            answer = daemon.ask("read and read", session="s")
            assert answer.text == (
                "I read it three times." if obedient else "Stopped after 3 steps without an answer."
            )
            assert answer.json()["choices"][0]["finish_reason"] == "length"
            assert asked(model) == 4, "three steps, and one to come to an end"
            assert daemon.ask("say next", session="s").text == "next"
            check_acceptable(model.requests[-1]["messages"])


def test_an_answer_that_reached_its_length_limit_says_so(tmp_path: Path) -> None:
    with ScriptedModel() as model:
        model.on_request = lambda body: stream(delta(content="as far as"), delta("length"), usage(10, 5), DONE)
        with DaemonProcess(config=model.config) as daemon:
            answer = daemon.ask("talk", session="s")
            assert answer.text == "as far as"
            assert answer.json()["choices"][0]["finish_reason"] == "length"


def test_a_refused_connection_is_named_in_the_error_the_status_and_the_trace() -> None:
    address = f"http://127.0.0.1:{free_port()}/v1"
    config = f'model: {{provider: openai, base_url: "{address}?token=hidden", name: m, api_key_env: ""}}\n'
    with DaemonProcess(config=config) as daemon:
        refused = daemon.ask("hello", session="s")
        message = refused.json()["error"]["message"]
        assert f"the model endpoint at {address} refused the connection" in message
        assert "hidden" not in message
        failure = json.loads(daemon.hermes("status", "--json").stdout)["model_health"]["last_failure"]
        assert (failure["code"], failure["cause"], failure["address"]) == ("connection", "refused", address)
        assert daemon.request("GET", "/health/detailed").json()["model_health"]["last_failure"] == failure
        assert daemon.request("GET", "/health/ready").json() == {"status": "ready"}
        ci = {"Authorization": f"Bearer {daemon.hermes('keys', 'create', 'ci').stdout.split()[0]}"}
        run = {"model": "hermes", "input": "hello", "session_id": "of-ci"}
        others = daemon.ask("hello", session="of-ci", **ci), daemon.request("POST", "/v1/runs", run, **ci)
        shown = [daemon.request("GET", path, **ci) for path in ("/api/sessions/of-ci", "/api/sessions", "/v1/runs")]
        assert others[0].json()["error"]["code"] == "upstream_connection"
        assert all("127.0.0.1" not in json.dumps(each.json()) for each in (*others, *shown))
        [line] = json.loads(daemon.hermes("trace", "s", "--json").stdout)["messages"]
        assert sum(step["what"] == "model" for step in line["steps"]) == TRIES - 1
        assert "refused the connection" in daemon.hermes("trace", "s").stdout
        assert address in daemon.stderr()
        assert "hidden" not in daemon.stderr()
