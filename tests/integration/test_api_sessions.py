"""One meaning of a session on every route, for clients that name one and for clients that send their history."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

openai = pytest.importorskip("openai")
pytestmark = pytest.mark.timeout(120)

TEN = 10


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as daemon:
        yield daemon


@pytest.fixture
def client(daemon: DaemonProcess) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{daemon.address}/v1", api_key=daemon.key, max_retries=0) as client:
        yield client


class Chat:
    """A client that sends its whole history, as most chat programs do."""

    def __init__(self, client: Any, *, stream: bool = False, **options: Any) -> None:
        self.client = client
        self.stream = stream
        self.options = options
        self.messages: list[dict[str, Any]] = []
        self.sessions: list[str] = []

    def say(self, text: str) -> str:
        self.messages.append({"role": "user", "content": text})
        raw = self.client.chat.completions.with_raw_response.create(
            model="hermes", messages=self.messages, stream=self.stream, **self.options
        )
        self.sessions.append(raw.headers["X-Hermes-Session-Id"])
        if self.stream:
            pieces = (chunk.choices[0].delta.content or "" for chunk in raw.parse() if chunk.choices)
            answer = "".join(pieces)
        else:
            answer = raw.parse().choices[0].message.content
        self.messages.append({"role": "assistant", "content": answer.strip()})
        return answer


def roles(daemon: DaemonProcess, session: str) -> list[str]:
    stored = daemon.request("GET", f"/api/sessions/{session}/messages?limit=200").json()["messages"]
    return [each["role"] for each in stored]


@pytest.mark.parametrize("stream", [False, True])
def test_ten_messages_of_a_client_that_sends_its_history_are_one_session(
    daemon: DaemonProcess, client: Any, stream: bool
) -> None:
    chat = Chat(client, stream=stream)
    for number in range(TEN):
        chat.say(f"!echo number {number}, stream {stream}")
    assert len(set(chat.sessions)) == 1
    assert roles(daemon, chat.sessions[0]) == ["user", "assistant"] * TEN


def test_an_answer_with_server_tools_is_found_by_what_the_client_has_of_it(
    daemon: DaemonProcess, client: Any
) -> None:
    for stream in (False, True):
        chat = Chat(client, stream=stream)
        chat.say(f"!tool todo {{}}\n!echo done {stream}")
        chat.say("!echo next")
        assert len(set(chat.sessions)) == 1
        assert roles(daemon, chat.sessions[0]).count("tool") == 1


def test_a_regenerated_answer_and_an_edited_question_fork_the_session(daemon: DaemonProcess, client: Any) -> None:
    chat = Chat(client)
    chat.say("!echo fork one")
    chat.say("!echo fork two")
    before = roles(daemon, chat.sessions[0])
    del chat.messages[-1]  # regenerate
    del chat.messages[-1]
    chat.say("!echo fork two")
    del chat.messages[2:]
    chat.say("!echo edited")
    first, second, third, fourth = chat.sessions
    assert first == second
    assert len({second, third, fourth}) == 3
    assert roles(daemon, first) == before
    assert roles(daemon, third) == roles(daemon, fourth) == ["user", "assistant"] * 2
    chat.messages[1]["content"] = "an answer that was never given"
    chat.say("!history")
    assert chat.sessions[-1] not in chat.sessions[:-1]
    assert "never given" in chat.messages[-1]["content"], "an unknown history opens a session"


def test_equal_first_messages_of_two_chats_stay_apart(client: Any) -> None:
    chats = [Chat(client), Chat(client)]
    for chat in chats:
        chat.say("!echo hello, both")
    for number, chat in enumerate(chats):
        chat.say(f"!echo mine is {number}")
        chat.say("!history")
    first, second = (chat.messages[-1]["content"] for chat in chats)
    assert "mine is 0" in first
    assert "mine is 1" not in first
    assert "mine is 1" in second
    assert "mine is 0" not in second


def test_users_of_one_key_never_share_a_session(client: Any) -> None:
    ann, bob = Chat(client, user="ann"), Chat(client, user="bob")
    ann.say("!echo shared words")
    bob.messages = list(ann.messages)
    bob.say("!echo more")
    assert bob.sessions[-1] != ann.sessions[-1]


def test_history_is_found_again_after_a_kill(daemon: DaemonProcess) -> None:
    def talk(messages: list[dict[str, str]]) -> Any:
        body = {"model": "hermes", "messages": messages}
        return daemon.request("POST", "/v1/chat/completions", body)

    messages = [{"role": "user", "content": "!echo before the kill"}]
    first = talk(messages)
    daemon.kill()
    daemon.start()
    messages += [{"role": "assistant", "content": first.text}, {"role": "user", "content": "!count"}]
    assert talk(messages).session == first.session


def test_every_route_selects_a_session_in_the_same_way(daemon: DaemonProcess, client: Any) -> None:
    name = "one-for-all"
    history = [
        {"role": "user", "content": "!echo one"},
        {"role": "assistant", "content": "one"},
        {"role": "user", "content": "!echo two"},
    ]
    named = {"X-Hermes-Session-Id": name}
    client.chat.completions.create(model="hermes", messages=history[:1], extra_headers=named)
    client.chat.completions.create(model="hermes", messages=history, extra_body={"session_id": name})
    client.responses.create(model="hermes", input=history, extra_headers=named)
    client.responses.create(model="hermes", input=history, conversation=name)
    for body, headers in (({"session_id": name}, {}), ({}, {"X_Hermes_Session_Id": name})):
        run = daemon.request("POST", "/v1/runs", {"input": history, **body}, **headers)
        assert run.status == 202
        daemon.ask("!echo after the run", session=name)
    assert roles(daemon, name) == ["user", "assistant"] * 8


def test_a_stable_key_selects_the_session_of_its_user(daemon: DaemonProcess) -> None:
    sessions = {
        user: {daemon.ask(f"!echo {n}", X_Hermes_Session_Key=user).session for n in range(3)} for user in ("a", "b")
    }
    assert [len(found) for found in sessions.values()] == [1, 1]
    assert sessions["a"] != sessions["b"]


def test_two_different_sessions_in_one_request_are_refused(daemon: DaemonProcess) -> None:
    body = {"model": "hermes", "session_id": "a", "messages": [{"role": "user", "content": "x"}]}
    assert daemon.request("POST", "/v1/chat/completions", body, X_Hermes_Session_Id="b").status in (400, 422)
    body["previous_response_id"] = "resp_x"
    assert daemon.request("POST", "/v1/chat/completions", body).status in (400, 422)


def test_a_response_is_continued_from_chat(daemon: DaemonProcess, client: Any) -> None:
    first = client.responses.create(model="hermes", input="!echo from responses")
    body = {
        "model": "hermes",
        "previous_response_id": first.id,
        "messages": [{"role": "user", "content": "!history"}],
    }
    answer = daemon.request("POST", "/v1/chat/completions", body)
    assert "from responses" in answer.text


def test_instructions_apply_and_do_not_pile_up() -> None:
    system = {"role": "system", "content": "Always be terse."}
    with ScriptedModel() as model, DaemonProcess(config=model.config) as daemon:

        def sent(*messages: dict[str, str]) -> list[dict[str, str]]:
            asked = [*messages, {"role": "user", "content": "say hi"}]
            body = {"model": "hermes", "messages": asked, "session_id": "instructed"}
            assert daemon.request("POST", "/v1/chat/completions", body).status == 200
            return [each for each in model.requests[-1]["messages"] if each["role"] == "system"]

        for [prompt] in (sent(system), sent(system), sent()):  # the session keeps them
            assert prompt["content"].count("Always be terse.") == 1
        [prompt] = sent({"role": "developer", "content": "Always be kind."})
        assert ("terse" in prompt["content"], prompt["content"].count("kind.")) == (False, 1)
        assert set(roles(daemon, "instructed")) == {"user", "assistant"}


# ---------------------------------------------------------------- questions and approvals


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("reply", "ran"), [("yes", True), ("no", False), ("why would you do that?", False)])
def test_a_client_that_knows_nothing_of_approvals_gives_one_in_words(
    client: Any, tmp_path: Path, stream: bool, reply: str, ran: bool
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    chat = Chat(client, stream=stream)
    command = json.dumps({"command": f"rm -rf {victim}"})
    question = chat.say(f"!tool terminal {command}\n!echo went on")
    assert "May I run this?" in question
    assert victim.exists()
    chat.say(reply)
    assert victim.exists() is not ran
    assert len(set(chat.sessions)) == 1
    assert "went on" in chat.messages[-1]["content"]
    chat.say("!echo later")
    assert len(set(chat.sessions)) == 1, "the conversation is found after the answer, too"


@pytest.mark.parametrize("stream", [False, True])
def test_a_question_of_the_model_is_answered_by_the_next_message(client: Any, stream: bool) -> None:
    chat = Chat(client, stream=stream)
    asked = chat.say('!tool clarify {"question": "Which colour?", "choices": ["red", "blue"]}')
    assert "Which colour?" in asked
    assert "blue" in chat.say("blue")
    assert len(set(chat.sessions)) == 1


# ---------------------------------------------------------------- commands in the text


def said(daemon: DaemonProcess, text: str, session: str) -> dict[str, str]:
    """What each route answers to the text."""
    chat = daemon.ask(text, session=session).text
    body = {"input": text, "session_id": session}
    response = daemon.request("POST", "/v1/responses", body).json()["output"][0]["content"][0]["text"]
    run = daemon.request("POST", "/v1/runs", body).json()

    def output() -> Any:
        return daemon.request("GET", f"/v1/runs/{run['run_id']}").json().get("output")

    return {"chat": chat, "responses": response, "runs": run["output"] or eventually(output)}


def test_safe_commands_act_and_others_go_to_the_model_on_every_route(daemon: DaemonProcess) -> None:
    daemon.ask("!echo begun", session="slashes")
    for answer in said(daemon, "/status", "slashes").values():
        assert "slashes" in answer
    for text in ("/restart", "/yolo on", "/approve always", "/no_think hello", "/usr/bin"):
        answers = said(daemon, text, "slashes")
        assert all(text in answer for answer in answers.values()), answers
    assert daemon.process is not None
    assert daemon.process.poll() is None


@pytest.mark.parametrize(("allowed", "acts"), [("none", False), ("all", True)])
def test_the_setting_decides_which_commands_act(allowed: str, acts: bool) -> None:
    with DaemonProcess(environ={"HERMES_API_COMMANDS": allowed}) as daemon:
        answer = daemon.ask("/grants", session="s").text
        assert ("/grants" in answer) is not acts


def test_a_command_acts_on_the_session_of_the_clients_history(client: Any) -> None:
    chat = Chat(client)
    chat.say("!echo titled")
    chat.say("/title My own title")
    chat.messages = chat.messages[:2]
    assert "My own title" in chat.say("/status")
    assert len(set(chat.sessions)) == 1


# ---------------------------------------------------------------- retries of client libraries


def test_a_repeat_of_the_library_is_the_same_turn_also_after_a_kill(daemon: DaemonProcess) -> None:
    first = daemon.ask("!echo only once", session="repeats")
    again = daemon.ask("!echo only once", session="repeats", x_stainless_retry_count="1")
    assert again.headers["X-Hermes-Turn-Id"] == first.headers["X-Hermes-Turn-Id"]
    daemon.kill()
    daemon.start()
    last = daemon.ask("!echo only once", session="repeats", x_stainless_retry_count="2")
    assert last.headers["X-Hermes-Turn-Id"] == first.headers["X-Hermes-Turn-Id"]
    assert roles(daemon, "repeats") == ["user", "assistant"]
    daemon.ask("!echo only once", session="repeats")
    assert roles(daemon, "repeats") == ["user", "assistant"] * 2, "a person said it again"


@pytest.mark.parametrize("session", ["tried", None])
def test_an_equal_request_after_a_failure_tries_the_turn_again(daemon: DaemonProcess, session: str | None) -> None:
    first = daemon.ask("!fail rate_limit", session=session)
    second = daemon.ask("!fail rate_limit", session=session)
    assert (first.status, second.status) == (429, 429)
    assert second.session == first.session
    assert second.headers["X-Hermes-Turn-Id"] != first.headers["X-Hermes-Turn-Id"]
    assert roles(daemon, first.session) == ["user"]
