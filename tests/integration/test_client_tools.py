"""Tools of clients: the model calls them, the client runs them, and the conversation goes on with their results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.daemon_process import Answer, DaemonProcess
from tests.support.model_server import DONE, Reply, delta, stream, usage
from tests.support.scripted_model import ScriptedModel, check_valid

openai = pytest.importorskip("openai")
pytestmark = pytest.mark.timeout(120)

FUNCTION = {
    "name": "get_weather",
    "description": "Weather of a city",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
WEATHER = {"type": "function", "function": FUNCTION}
TERMINAL = {"type": "function", "function": {"name": "terminal", "parameters": {"type": "object", "properties": {}}}}
OSLO = ("get_weather", {"city": "Oslo"})


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture(scope="module")
def daemon(model: ScriptedModel) -> Iterator[DaemonProcess]:
    with DaemonProcess(config=model.config) as daemon:
        yield daemon


@pytest.fixture
def client(daemon: DaemonProcess) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{daemon.address}/v1", api_key=daemon.key, max_retries=0) as client:
        yield client


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def calls(*made: tuple[str, dict[str, Any]], text: str = "") -> Reply:
    listed = [
        {"index": n, "id": f"call_{n}", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for n, (name, arguments) in enumerate(made)
    ]
    return stream(delta(content=text), delta(tool_calls=listed), delta("tool_calls"), usage(10, 5), DONE)


def ask(daemon: DaemonProcess, messages: list[dict[str, Any]], session: str | None = None, **fields: Any) -> Answer:
    body = {"model": "hermes", "messages": messages, "tools": [WEATHER], **fields}
    headers = {} if session is None else {"X_Hermes_Session_Id": session}
    return daemon.request("POST", "/v1/chat/completions", body, **headers)


def choice(answer: Answer) -> Any:
    assert answer.status == 200, answer.body
    return answer.json()["choices"][0]


def results(message: dict[str, Any], text: str = "sunny") -> list[dict[str, Any]]:
    return [{"role": "tool", "tool_call_id": call["id"], "content": text} for call in message["tool_calls"]]


# ---------------------------------------------------------------- chat completions


@pytest.mark.parametrize("streamed", [False, True])
def test_an_agent_loop_that_sends_its_history_is_one_session(
    model: ScriptedModel, client: Any, streamed: bool
) -> None:
    messages: list[Any] = [user(f'call get_weather {{"city": "Oslo {streamed}"}}')]
    create = client.chat.completions.with_raw_response.create
    raw = create(model="hermes", messages=messages, tools=[WEATHER], stream=streamed)
    if streamed:
        chunks = [chunk.choices[0] for chunk in raw.parse() if chunk.choices]
        [call] = [call for chunk in chunks for call in chunk.delta.tool_calls or ()]
        assert list(filter(None, (chunk.finish_reason for chunk in chunks))) == ["tool_calls"]
    else:
        first = raw.parse().choices[0]
        [call] = first.message.tool_calls
        assert (first.finish_reason, first.message.content) == ("tool_calls", None)
    function = {"name": call.function.name, "arguments": call.function.arguments}
    assert (function["name"], json.loads(function["arguments"])) == ("get_weather", {"city": f"Oslo {streamed}"})
    asked = {"id": call.id, "type": "function", "function": function}
    messages.append({"role": "assistant", "content": "", "tool_calls": [asked]})
    messages.append({"role": "tool", "tool_call_id": call.id, "content": "sunny"})
    again = create(model="hermes", messages=messages, tools=[WEATHER])
    assert again.parse().choices[0].message.content == "results: sunny"
    assert again.headers["X-Hermes-Session-Id"] == raw.headers["X-Hermes-Session-Id"]
    check_valid(model.requests[-1]["messages"])
    offered = {tool["function"]["name"] for tool in model.requests[-1]["tools"]}
    assert {"get_weather", "terminal"} <= offered


def test_the_librarys_accumulator_takes_streamed_calls(client: Any) -> None:
    asked = [user('call get_weather {"city": "Rome"}')]
    with client.chat.completions.stream(model="hermes", messages=asked, tools=[WEATHER]) as events:
        [call] = events.get_final_completion().choices[0].message.tool_calls
    assert json.loads(call.function.arguments) == {"city": "Rome"}


def test_results_continue_after_a_kill_without_any_header(daemon: DaemonProcess, model: ScriptedModel) -> None:
    messages = [user('call get_weather {"city": "Bergen"}')]
    first = ask(daemon, messages)
    message = choice(first)["message"]
    why = daemon.hermes("why", first.session).stdout
    assert "get_weather (call_0)" in why
    assert "the client runs get_weather" in daemon.hermes("trace", first.session).stdout
    daemon.kill()
    daemon.start()
    assert "get_weather (call_0)" in daemon.hermes("why", first.session).stdout
    second = ask(daemon, [*messages, message, *results(message, "rain")])
    assert (second.session, second.text) == (first.session, "results: rain")
    assert "get_weather (call_0)" not in daemon.hermes("why", first.session).stdout


@pytest.mark.parametrize("form", ["named", "history", "responses"])
def test_a_result_that_comes_twice_reaches_the_model_once(
    daemon: DaemonProcess, model: ScriptedModel, form: str
) -> None:
    question = f'call get_weather {{"city": "Twice {form}"}}'
    first = ask(daemon, [user(question)])
    message = choice(first)["message"]
    both = [*results(message, "rain"), *results(message, "snow")]
    if form == "responses":
        outputs = [{"type": "function_call_output", "call_id": "call_0", "output": text} for text in ("rain", "snow")]
        body = {"model": "hermes", "conversation": first.session, "input": outputs}
        second = daemon.request("POST", "/v1/responses", body)
        assert second.status == 200, second.body
    else:
        second = (
            ask(daemon, both, first.session) if form == "named" else ask(daemon, [user(question), message, *both])
        )
        assert second.text == "results: snow"
        assert "the last one counts" in second.json()["hermes"]["notice"]
    assert second.session == first.session
    check_valid(model.requests[-1]["messages"])


def test_an_imported_history_with_open_calls_is_repaired(daemon: DaemonProcess, model: ScriptedModel) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    orphan = {"role": "tool", "tool_call_id": "orphan", "content": "?"}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    answer = ask(daemon, [user("an import"), orphan, asked, user("hello")])
    assert answer.status == 200, answer.body
    check_valid(model.requests[-1]["messages"])


def test_our_calls_run_and_the_clients_wait_in_one_step(daemon: DaemonProcess, model: ScriptedModel) -> None:
    steps = iter([calls(OSLO, ("todo", {}), text="Both."), None])
    model.on_request = lambda body: next(steps, None)
    try:
        first = ask(daemon, [user("mixed")], session="mixed")
        message = choice(first)["message"]
        assert [call["function"]["name"] for call in message["tool_calls"]] == ["get_weather"]
        second = ask(daemon, results(message), session="mixed")
    finally:
        model.on_request = lambda body: None
    assert "sunny" in second.text
    sent = model.requests[-1]["messages"]
    check_valid(sent)
    assert [each["role"] for each in sent] == ["system", "user", "assistant", "tool", "assistant", "tool"]


def test_a_client_tool_hides_the_servers_tool_of_its_name(daemon: DaemonProcess, model: ScriptedModel) -> None:
    first = ask(daemon, [user("run touch /tmp/never")], tools=[TERMINAL])
    assert choice(first)["finish_reason"] == "tool_calls"
    offered = [tool["function"]["name"] for tool in model.requests[-1]["tools"]]
    assert offered.count("terminal") == 1
    trace = daemon.request("GET", f"/api/sessions/{first.session}/messages").json()["messages"]
    assert [each["role"] for each in trace] == ["user", "assistant"], "nothing ran on the server"


def test_the_next_message_ends_calls_that_were_never_answered(daemon: DaemonProcess, model: ScriptedModel) -> None:
    first = ask(daemon, [user('call get_weather {"city": "Nowhere"}')], session="left")
    assert choice(first)["finish_reason"] == "tool_calls"
    assert ask(daemon, [user("say goodbye")], session="left").text == "goodbye"
    sent = model.requests[-1]["messages"]
    check_valid(sent)
    assert "No result" in next(each["content"] for each in sent if each["role"] == "tool")
    late = ask(daemon, results(choice(first)["message"]), session="left")
    assert (late.status, late.json()["error"]["code"]) == (409, "call_not_waiting")


def test_results_sent_twice_under_one_key_get_one_answer(daemon: DaemonProcess, model: ScriptedModel) -> None:
    first = ask(daemon, [user('call get_weather {"city": "Twice"}')], session="twice")
    body = {"model": "hermes", "messages": results(choice(first)["message"]), "tools": [WEATHER]}
    headers = {"X_Hermes_Session_Id": "twice", "Idempotency_Key": "results-1"}
    answers = [daemon.request("POST", "/v1/chat/completions", body, **headers) for _ in range(2)]
    assert [(answer.status, answer.text) for answer in answers] == [(200, "results: sunny")] * 2
    check_valid(model.requests[-1]["messages"])


def test_a_history_that_ends_in_results_of_another_server_is_taken(
    daemon: DaemonProcess, model: ScriptedModel
) -> None:
    call = {"id": "x1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    history = [user("weather?"), {"role": "assistant", "content": None, "tool_calls": [call]}]
    answer = ask(daemon, [*history, {"role": "tool", "tool_call_id": "x1", "content": "fog"}])
    assert answer.text == "results: fog"
    check_valid(model.requests[-1]["messages"])


def test_tool_choice_and_the_servers_tools_are_the_clients_to_decide(
    daemon: DaemonProcess, model: ScriptedModel
) -> None:
    def sent(**fields: Any) -> dict[str, Any]:
        assert ask(daemon, [user("say hi")], **fields).status == 200
        return model.requests[-1]

    def names(request: dict[str, Any]) -> set[str]:
        return {tool["function"]["name"] for tool in request.get("tools", ())}

    assert names(sent(tool_choice="required")) == {"get_weather"}
    named = {"type": "function", "function": {"name": "get_weather"}}
    request = sent(tool_choice=named, parallel_tool_calls=False)
    assert (request["tool_choice"], request["parallel_tool_calls"]) == (named, False)
    assert names(sent(hermes={"tools": "none"})) == {"get_weather"}
    assert names(sent(hermes={"tools": ["todo"]})) == {"get_weather", "todo"}
    assert names(sent(model="hermes:chat", tools=None)) == set()
    assert "tool_choice" not in sent(model="hermes:chat", tools=None, tool_choice="none")
    assert names(sent(tools=None, functions=[FUNCTION])) >= {"get_weather", "terminal"}
    other = {"type": "function", "function": {"name": "other"}}
    wrong: list[dict[str, Any]] = [
        {"tool_choice": other},
        {"tools": None, "tool_choice": "required"},
        {"tools": [{}]},
    ]
    assert {ask(daemon, [user("say hi")], **fields).status for fields in wrong} == {422}


def test_a_tool_that_is_switched_off_does_not_run(daemon: DaemonProcess, model: ScriptedModel) -> None:
    answer = ask(daemon, [user("run echo ran")], hermes={"tools": "none"})
    assert "There is no tool terminal" in answer.text


# ---------------------------------------------------------------- responses and runs


@pytest.mark.parametrize("how", ["previous", "history", "stream"])
def test_responses_end_with_function_calls_and_go_on_with_outputs(
    model: ScriptedModel, client: Any, how: str
) -> None:
    flat: dict[str, Any] = {"type": "function", **FUNCTION}
    question = [{"role": "user", "content": f'call get_weather {{"city": "{how}"}}'}]
    if how == "stream":
        with client.responses.stream(model="hermes", input=question, tools=[flat]) as events:
            first = events.get_final_response()
    else:
        first = client.responses.create(model="hermes", input=question, tools=[flat])
    [call] = first.output
    assert (call.type, call.name, json.loads(call.arguments)) == ("function_call", "get_weather", {"city": how})
    output = {"type": "function_call_output", "call_id": call.call_id, "output": "snow"}
    if how == "history":
        second = client.responses.create(
            model="hermes", input=[*question, call.model_dump(exclude_none=True), output], tools=[flat]
        )
    else:
        second = client.responses.create(model="hermes", input=[output], previous_response_id=first.id, tools=[flat])
    assert second.output_text == "results: snow"
    assert second.model_extra["hermes"]["session_id"] == first.model_extra["hermes"]["session_id"]
    check_valid(model.requests[-1]["messages"])
    again = client.responses.retrieve(first.id)
    assert [item.type for item in again.output] == ["function_call"]


# ---------------------------------------------------------------- side requests of chat programs


@pytest.mark.parametrize("streamed", [False, True])
def test_a_title_for_a_chat_needs_no_tools_and_leaves_no_session(
    daemon: DaemonProcess, model: ScriptedModel, client: Any, streamed: bool
) -> None:
    def sessions() -> int:
        return len(daemon.request("GET", "/api/sessions?limit=100").json()["sessions"])

    before = sessions()
    asked = "### Task:\nGenerate a title.\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>"
    reply = client.chat.completions.create(model="hermes", messages=[user(asked)], stream=streamed)
    if streamed:
        text = "".join(chunk.choices[0].delta.content or "" for chunk in reply if chunk.choices)
    else:
        text = reply.choices[0].message.content
    assert text.startswith("heard: ### Task:")
    assert "tools" not in model.requests[-1]
    assert sessions() == before
