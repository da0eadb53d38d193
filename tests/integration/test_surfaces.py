"""Tools, approvals and questions over HTTP, with the real daemon, shell and filesystem, through crashes."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon_process import Answer, DaemonProcess
from tests.support.waiting import eventually

openai = pytest.importorskip("openai")
pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as daemon:
        yield daemon


@pytest.fixture
def client(daemon: DaemonProcess) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{daemon.address}/v1", api_key=daemon.key, max_retries=0) as client:
        yield client


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(4) as pool:
        yield pool


def terminal(command: str) -> str:
    return f"!tool terminal {json.dumps({'command': command})}"


def clarify(question: str, *choices: str) -> str:
    return f"!tool clarify {json.dumps({'question': question, 'choices': list(choices)})}"


def script(*lines: str) -> str:
    return "\n".join(lines)


def session(daemon: DaemonProcess, name: str) -> dict[str, Any]:
    answer = daemon.request("GET", f"/api/sessions/{name}")
    view: dict[str, Any] = answer.json() if answer.status == 200 else {}
    return view


def asked(daemon: DaemonProcess, name: str) -> Any:
    return eventually(lambda: session(daemon, name).get("pending"))


def run(daemon: DaemonProcess, name: str) -> dict[str, Any]:
    found: dict[str, Any] = daemon.request("GET", f"/v1/runs/{name}").json()
    return found


def ended(daemon: DaemonProcess, name: str) -> dict[str, Any]:
    over = ("completed", "failed", "cancelled")
    return eventually(lambda: found if (found := run(daemon, name))["status"] in over else None)  # type: ignore[no-any-return]


def events(answer: Answer) -> list[tuple[str, str, Any]]:
    """Id, name and data of each."""
    told = []
    for block in answer.body.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields.get("data") not in (None, "[DONE]"):
            told.append((fields.get("id", ""), fields.get("event", ""), json.loads(fields["data"])))
    return told


def stream(daemon: DaemonProcess, text: str, name: str) -> Answer:
    body = {"model": "hermes", "stream": True, "messages": [{"role": "user", "content": text}]}
    return daemon.request("POST", "/v1/chat/completions", body, X_Hermes_Session_Id=name, X_Hermes_Events="1")


# ---------------------------------------------------------------- chat


def test_a_stream_shows_tools_at_work_and_its_text_is_the_answer(daemon: DaemonProcess) -> None:
    told = events(stream(daemon, script(terminal("echo hello"), "!echo all done"), "s"))
    names = [name for _, name, _ in told if name]
    assert names[0] == "hermes.tool.started"
    assert names[-2:] == ["hermes.tool.completed", "hermes.session"]
    started = next(data["hermes"] for _, name, data in told if name == "hermes.tool.started")
    assert (started["name"], started["session_id"]) == ("terminal", "s")
    text = "".join(data["choices"][0]["delta"].get("content", "") for _, _, data in told)
    assert text == "all done"


def test_a_question_is_answered_by_the_next_message_and_that_gets_the_turns_answer(daemon: DaemonProcess) -> None:
    question = daemon.ask(script(clarify("Which colour?", "red", "blue"), "!history"), session="q")
    assert question.json()["choices"][0]["finish_reason"] == "stop"
    assert "Which colour?" in question.text
    pending = question.json()["hermes"]["pending"]
    assert (pending["kind"], pending["choices"], pending["session_id"]) == ("question", ["red", "blue"], "q")
    answer = daemon.ask("2", session="q")
    assert "3. tool: blue" in answer.text
    assert session(daemon, "q")["pending"] is None


def test_an_approval_asked_in_a_stream_is_given_elsewhere_and_the_stream_goes_on(
    daemon: DaemonProcess, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    streaming = pool.submit(stream, daemon, script(terminal(f"rm -rf {victim}"), "!echo gone"), "a")
    call = asked(daemon, "a")["call_id"]
    assert victim.exists()
    refused = daemon.request("POST", "/api/sessions/a/answer", {"answer": "once", "call_id": "another"})
    assert (refused.status, refused.json()["error"]["code"]) == (409, "wrong_phase")
    assert daemon.request("POST", "/api/sessions/a/answer", {"answer": "once", "call_id": call}).status == 200
    names = [name for _, name, _ in events(streaming.result()) if name]
    wanted = ["hermes.approval.request", "hermes.answered", "hermes.tool.started", "hermes.tool.completed"]
    assert [name for name in names if name in wanted] == wanted
    assert not victim.exists()


def test_a_message_behind_a_question_is_not_left_waiting_without_a_word(
    daemon: DaemonProcess, tmp_path: Path
) -> None:
    daemon.ask(script(terminal(f"rm -rf {tmp_path / 'x'}"), "!echo gone"), session="behind")
    later = daemon.ask("how are you?", session="behind")
    assert "waits for another turn" in later.text
    assert later.json()["hermes"]["pending"]["kind"] == "approval"
    assert daemon.ask("no", session="behind").text == "gone", "whatever the scripted model makes of a no"
    eventually(lambda: session(daemon, "behind")["session"]["phase"] == "idle")
    contents = [m["content"] for m in daemon.request("GET", "/api/sessions/behind/messages").json()["messages"]]
    assert "how are you?" in contents


def test_a_session_that_is_compressed_in_the_middle_of_a_turn_tells_its_new_id() -> None:
    config = "model: {context_window: 10000}\ncompression: {threshold: 0.95}\n"
    turn = script(*[terminal("seq 1 3000")] * 3, "!echo after")
    with DaemonProcess(config=config) as daemon:
        daemon.ask("!long 300", session="first")
        for _ in range(4):
            answer = stream(daemon, turn, "first")
            told = events(answer)
            moves = [data["session_id"] for _, name, data in told if name == "hermes.session"]
            finish = next(data for _, _, data in told if data["choices"][0]["finish_reason"])
            assert finish["hermes"]["session_id"] == moves[-1]
            if len(moves) > 1:
                break
        assert len(moves) > 1, "it was compressed in the middle of a turn"
        assert answer.session != moves[-1]
        assert daemon.request("GET", "/api/sessions/first").json()["lineage"].index(moves[-1]) > 0
        plain = daemon.ask("!echo still here", session="first")
        assert plain.text == "still here"
        assert plain.session == plain.json()["hermes"]["session_id"]


# ---------------------------------------------------------------- wishes about a session


def test_what_is_steered_in_is_seen_by_the_model_in_the_same_turn(
    daemon: DaemonProcess, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    go_on = tmp_path / "go-on"
    waiting = script(terminal(f"until [ -e {go_on} ]; do sleep 0.05; done"), "!echo unheard")
    answering = pool.submit(daemon.ask, waiting, "steered")
    eventually(lambda: session(daemon, "steered").get("session", {}).get("messages", 0) >= 2)
    told = daemon.request("POST", "/api/sessions/steered/steer", {"text": "!echo heard"})
    assert (told.status, told.json()["handling"]) == (202, "steering")
    go_on.touch()
    assert answering.result().text == "heard"
    assert daemon.request("POST", "/api/sessions/nobody/steer", {"text": "hello"}).status == 404


def test_a_stop_ends_a_running_tool_within_a_second(daemon: DaemonProcess, pool: ThreadPoolExecutor) -> None:
    took_s = []
    for name in ("one", "two", "three"):
        answering = pool.submit(daemon.ask, script(terminal("sleep 60"), "!echo slept"), name)
        eventually(lambda name=name: session(daemon, name).get("session", {}).get("messages", 0) >= 2)
        began = time.monotonic()
        assert daemon.request("POST", f"/api/sessions/{name}/stop", {}).status == 200
        answer = answering.result()
        took_s.append(time.monotonic() - began)
        assert (answer.status, answer.json()["error"]["code"]) == (409, "cancelled")
    assert min(took_s) < 1, "the quickest: the machine may have stood still in the others"


def test_a_fork_goes_its_own_way(daemon: DaemonProcess) -> None:
    daemon.ask("!echo one", session="trunk")
    fork = daemon.request("POST", "/api/sessions/trunk/fork", {"title": "another way"})
    assert fork.status == 201
    branch = fork.json()["session_id"]
    assert session(daemon, branch)["preferences"]["title"] == "another way"
    assert "!echo one" in daemon.ask("!history", session=branch).text
    daemon.ask("!echo two", session="trunk")
    assert "!echo two" not in daemon.ask("!history", session=branch).text


def test_a_fork_of_a_session_at_work_leaves_out_calls_that_have_no_outcome(
    daemon: DaemonProcess, pool: ThreadPoolExecutor
) -> None:
    daemon.ask("!echo one", session="trunk")
    answering = pool.submit(daemon.ask, script(terminal("sleep 60"), "!echo slept"), "trunk")
    eventually(lambda: session(daemon, "trunk")["session"]["messages"] >= 4)
    branch = daemon.request("POST", "/api/sessions/trunk/fork").json()["session_id"]
    assert "!echo one" in daemon.ask("!history", session=branch).text
    messages = daemon.request("GET", f"/api/sessions/{branch}/messages").json()["messages"]
    assert not [message for message in messages if "tool_calls" in message]
    daemon.request("POST", "/api/sessions/trunk/stop")
    assert answering.result().status == 409


def test_a_compressed_sessions_first_id_leads_to_its_end_unless_that_very_one_is_asked_for(
    daemon: DaemonProcess,
) -> None:
    for _ in range(6):
        daemon.ask("!long 400", session="long")
    assert daemon.request("POST", "/api/sessions/long/compress", {"topic": "numbers"}).status == 202
    end = eventually(lambda: view if (view := session(daemon, "long"))["session"]["id"] != "long" else None)
    assert end["lineage"][0] == "long"
    exact = daemon.request("GET", "/api/sessions/long?exact=1").json()["session"]
    assert (exact["id"], exact["phase"], exact["successor"]) == ("long", "ended", end["session"]["id"])
    messages = daemon.request("GET", "/api/sessions/long/messages?exact=1").json()
    assert (messages["session_id"], len(messages["messages"])) == ("long", 12)
    answer = daemon.ask("!echo on", session="long")
    assert answer.session == answer.json()["hermes"]["session_id"] == end["session"]["id"]
    assert daemon.request("POST", "/api/sessions/long/undo", {"turns": 1}).status == 200
    assert "!echo on" not in daemon.ask("!history", session="long").text


# ---------------------------------------------------------------- responses


def test_responses_go_on_from_each_other_and_fork_where_something_else_came_after(client: Any) -> None:
    first = client.responses.create(
        model="hermes", input=script(terminal("echo hi"), "!echo one"), metadata={"k": "v"}
    )
    assert (first.status, first.output_text, first.metadata) == ("completed", "one", {"k": "v"})
    assert [item.type for item in first.output] == ["mcp_call", "message"]
    second = client.responses.create(model="hermes", input="!echo two", previous_response_id=first.id)
    other = client.responses.create(model="hermes", input="!history", previous_response_id=first.id)
    assert "one" in other.output_text
    assert "!echo two" not in other.output_text
    last = client.responses.create(model="hermes", input="!history", previous_response_id=second.id)
    assert "!echo two" in last.output_text
    assert second.model_extra["hermes"]["session_id"] == first.model_extra["hermes"]["session_id"]
    assert other.model_extra["hermes"]["session_id"] != first.model_extra["hermes"]["session_id"]
    assert client.responses.retrieve(last.id).previous_response_id == second.id


def test_a_response_is_streamed_and_read_back_the_same(daemon: DaemonProcess, client: Any) -> None:
    text = script(terminal("echo 1"), terminal("echo 2"), "!echo both")
    with client.responses.stream(model="hermes", input=text) as streaming:
        told = list(streaming)
        final = streaming.get_final_response()
    numbers = [event.sequence_number for event in told if event.type.startswith("response.")]
    assert numbers == sorted(numbers)
    assert not [event.type for event in told if event.type.startswith("hermes.")]
    assert [event.type for event in told].count("response.mcp_call.completed") == 2
    assert final.output_text == "both"
    daemon.kill()
    daemon.start()
    stored = daemon.request("GET", f"/v1/responses/{final.id}").json()
    assert stored["status"] == "completed"
    assert [item["id"] for item in stored["output"]] == [item.id for item in final.output]


def test_a_deleted_response_and_one_not_to_be_stored_are_not_there(daemon: DaemonProcess, client: Any) -> None:
    kept = client.responses.create(model="hermes", input="!echo kept")
    gone = client.responses.create(model="hermes", input="!echo gone", store=False)
    client.responses.delete(kept.id)
    daemon.kill()
    daemon.start()
    for name in (kept.id, gone.id, "resp_nonsense"):
        assert daemon.request("GET", f"/v1/responses/{name}").status == 404
        after = daemon.request("POST", "/v1/responses", {"input": "hi", "previous_response_id": name})
        assert (after.status, after.json()["error"]["code"]) == (404, "previous_response_not_found")


def test_the_same_key_is_one_response_wherever_it_was_going_to_go_on(daemon: DaemonProcess, client: Any) -> None:
    first = client.responses.create(model="hermes", input="!echo one")
    key = {"Idempotency-Key": "k"}
    answers = [
        client.responses.create(model="hermes", input="!count", previous_response_id=first.id, extra_headers=key)
        for _ in range(2)
    ]
    assert answers[0].id == answers[1].id
    assert len(daemon.request("GET", "/api/sessions").json()["sessions"]) == 1


def test_a_response_that_waits_is_answered_by_the_next_one(client: Any) -> None:
    waiting = client.responses.create(model="hermes", input=script(clarify("Which?"), "!history"))
    assert waiting.status == "completed"
    assert "Which?" in waiting.output_text
    answered = client.responses.create(model="hermes", input="this one", previous_response_id=waiting.id)
    assert "tool: this one" in answered.output_text
    assert client.responses.retrieve(waiting.id).status == "completed"


def test_stream_ends_with_a_question_and_the_next_message_answers_it(client: Any) -> None:
    with client.responses.stream(model="hermes", input=script(clarify("Which?"), "!history")) as streaming:
        told = list(streaming)
        waiting = streaming.get_final_response()
    assert "Which?" in "".join(event.delta for event in told if event.type == "response.output_text.delta")
    assert waiting.status == "completed"
    with client.responses.stream(model="hermes", input="this one", previous_response_id=waiting.id) as streaming:
        assert "tool: this one" in streaming.get_final_response().output_text


def test_output_can_be_sent_back_as_items_or_as_references(client: Any) -> None:
    question = {"role": "user", "content": script(terminal("echo hi"), "!echo one")}
    first = client.responses.create(model="hermes", input=[question])
    again = {"role": "user", "content": "!history"}
    whole = client.responses.create(model="hermes", input=[question, *first.output, again])
    names = [{"type": "item_reference", "id": item.id} for item in first.output]
    referred = client.responses.create(model="hermes", input=[question, *names, again])
    for answer in (whole, referred):
        assert "tool: hi" in answer.output_text
        assert "assistant: one" in answer.output_text


def test_instructions_hold_for_one_response(daemon: DaemonProcess, client: Any) -> None:
    first = client.responses.create(model="hermes", input="!echo one", instructions="Be brief.")
    second = client.responses.create(
        model="hermes", input="!echo two", instructions="Be kind.", previous_response_id=first.id
    )
    assert (first.instructions, second.instructions) == ("Be brief.", "Be kind.")
    name = first.model_extra["hermes"]["session_id"]
    messages = daemon.request("GET", f"/api/sessions/{name}/messages").json()["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant"] * 2


def test_background_response_survives_a_crash_and_is_polled(daemon: DaemonProcess, client: Any) -> None:
    text = script(terminal("sleep 1; echo hi"), "!echo done")
    started = client.responses.create(model="hermes", input=text, background=True)
    assert started.status in ("queued", "in_progress")
    assert started.background
    daemon.kill()
    daemon.start()
    answer = eventually(lambda: _polled(daemon, started.id, "completed"))
    assert answer["output"][-1]["content"][0]["text"] == "done"
    items = daemon.request("GET", f"/v1/responses/{started.id}/input_items").json()
    assert [item["content"][0]["text"] for item in items["data"]] == [text]
    refused = daemon.request("POST", "/v1/responses", {"input": "x", "background": True, "store": False})
    assert (refused.status, refused.json()["error"]["param"]) == (422, "store")


def test_background_response_is_cancelled(daemon: DaemonProcess, client: Any) -> None:
    started = client.responses.create(model="hermes", input=script(terminal("sleep 60")), background=True)
    eventually(lambda: _polled(daemon, started.id, "in_progress"))
    assert client.responses.cancel(started.id).status in ("in_progress", "cancelled")
    answer = eventually(lambda: _polled(daemon, started.id, "cancelled"))
    assert answer["error"]["code"] == "cancelled"
    assert client.responses.cancel(started.id).status == "cancelled"


def test_stored_response_is_streamed_again_from_any_event(client: Any) -> None:
    text = script(terminal("echo 1"), "!echo both")
    with client.responses.stream(model="hermes", input=text) as streaming:
        told = [event for event in streaming if event.type.startswith("response.")]
        final = streaming.get_final_response()
    again = list(client.responses.retrieve(final.id, stream=True))
    assert [event.type for event in again if "delta" not in event.type] == [
        event.type for event in told if "delta" not in event.type
    ]
    middle = next(event.sequence_number for event in told if event.type == "response.mcp_call.completed")
    rest = list(client.responses.retrieve(final.id, stream=True, starting_after=middle))
    assert [event.sequence_number for event in rest if event.sequence_number <= middle] == []
    assert rest[-1].response.output_text == "both"


def _polled(daemon: DaemonProcess, name: str, status: str) -> dict[str, Any] | None:
    found: dict[str, Any] = daemon.request("GET", f"/v1/responses/{name}").json()
    return found if found["status"] == status else None


def test_conversation_names_the_session(client: Any) -> None:
    for text in ("!echo one", "!history"):
        last = client.responses.create(model="hermes", input=text, conversation="conv_1")
    assert "!echo one" in last.output_text
    assert last.conversation.id == last.model_extra["hermes"]["session_id"] == "conv_1"


def test_two_that_go_on_from_the_same_response_at_once_do_not_see_each_other(
    client: Any, pool: ThreadPoolExecutor
) -> None:
    first = client.responses.create(model="hermes", input="!echo one")

    def go_on(text: str) -> Any:
        return client.responses.create(
            model="hermes", input=script(terminal(f"echo {text}"), "!history"), previous_response_id=first.id
        )

    answers = dict(zip("ab", pool.map(go_on, "ab"), strict=True))
    assert "echo b" not in answers["a"].output_text
    assert "echo a" not in answers["b"].output_text
    sessions = {answer.model_extra["hermes"]["session_id"] for answer in answers.values()}
    assert len(sessions) == 2


def test_a_response_that_was_taken_back_is_nothing_to_go_on_from(daemon: DaemonProcess, client: Any) -> None:
    first = client.responses.create(model="hermes", input="!echo one")
    name = first.model_extra["hermes"]["session_id"]
    client.responses.create(model="hermes", input="!echo two", previous_response_id=first.id)
    assert daemon.request("POST", f"/api/sessions/{name}/undo", {"turns": 2}).status == 200
    after = daemon.request("POST", "/v1/responses", {"input": "hi", "previous_response_id": first.id})
    assert (after.status, after.json()["error"]["code"]) == (409, "turn_taken_back")
    assert client.responses.retrieve(first.id).output_text == "one"


# ---------------------------------------------------------------- runs


def test_an_approval_survives_a_crash_and_every_reader_gets_every_event_once(
    daemon: DaemonProcess, pool: ThreadPoolExecutor, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    text = script(terminal(f"rm -rf {victim}"), "!echo gone")
    started = daemon.request("POST", "/v1/runs", {"input": text, "session_id": "work", "metadata": {"job": "7"}})
    assert started.status == 202
    name = started.json()["run_id"]
    eventually(lambda: run(daemon, name)["status"] == "waiting_for_approval")
    daemon.kill()
    daemon.start()
    waiting = run(daemon, name)
    assert (waiting["status"], waiting["metadata"]) == ("waiting_for_approval", {"job": "7"})
    assert victim.exists()
    readers = [pool.submit(daemon.request, "GET", f"/v1/runs/{name}/events") for _ in range(2)]
    wrong = daemon.request("POST", f"/v1/runs/{name}/approval", {"choice": "maybe"})
    assert (wrong.status, wrong.json()["error"]["param"]) == (400, "choice")
    assert daemon.request("POST", f"/v1/runs/{name}/approval", {"choice": "once"}).status == 200
    assert ended(daemon, name)["output"] == "gone"
    assert not victim.exists()
    first, second = ([event for event in events(reader.result()) if event[0]] for reader in readers)
    assert first == second
    assert [event for _, event, _ in first] == [
        *("run.accepted", "run.started", "message.completed", "approval.request", "answered"),
        *("tool.started", "tool.completed", "run.completed"),
    ]
    again = daemon.request("POST", f"/v1/runs/{name}/approval", {"choice": "once"})
    assert (again.status, again.json()["error"]["code"]) == (409, "not_waiting")


def test_a_reader_goes_on_after_the_last_event_it_has_also_across_a_crash(daemon: DaemonProcess) -> None:
    text = script(terminal("echo 1"), "!slow 6")
    name = daemon.request("POST", "/v1/runs", {"input": text, "session_id": "replay"}).json()["run_id"]
    eventually(lambda: session(daemon, "replay")["session"]["messages"] >= 3)
    daemon.kill()
    daemon.start()
    everything = events(daemon.request("GET", f"/v1/runs/{name}/events"))
    stored = [event for event in everything if event[0]]
    assert [event for _, event, _ in stored if event.startswith("run.")] == [
        *("run.accepted", "run.started", "run.interrupted", "run.started", "run.completed"),
    ]
    for position, (place, _, _) in enumerate(stored[:-1]):
        rest = events(daemon.request("GET", f"/v1/runs/{name}/events", Last_Event_ID=place))
        assert rest == stored[position + 1 :]
    assert daemon.request("GET", f"/v1/runs/{name}/events", Last_Event_ID=stored[-1][0]).status == 204


def test_a_reader_is_told_how_to_go_on_when_the_daemon_restarts_and_the_trace_knows_the_run(
    daemon: DaemonProcess,
) -> None:
    asked = {"input": script(clarify("Which?", "a", "b"), "!echo chosen"), "session_id": "restarted"}
    name = daemon.request("POST", "/v1/runs", asked).json()["run_id"]
    eventually(lambda: run(daemon, name)["status"] == "waiting_for_answer")
    connection = http.client.HTTPConnection(daemon.address.removeprefix("http://"), timeout=60)
    connection.request("GET", f"/v1/runs/{name}/events", headers={"Authorization": f"Bearer {daemon.key}"})
    with closing(connection), connection.getresponse() as reading:
        first = reading.readline()
        daemon.terminate()
        told = events(Answer(reading.status, {}, first + reading.read()))
    assert (told[-1][0], told[-1][1]) == ("", "daemon.stopping")
    assert told[-1][2]["last_event_id"] == told[-2][0]
    [line] = json.loads(daemon.hermes("trace", name, "--json").stdout)["messages"]  # from the store
    assert (line["session"], line["state"]) == ("restarted", "asking")
    daemon.start()
    daemon.request("POST", f"/v1/runs/{name}/answer", {"answer": "a"})
    rest = events(daemon.request("GET", f"/v1/runs/{name}/events", Last_Event_ID=told[-1][2]["last_event_id"]))
    assert rest[-1][1] == "run.completed"
    [line] = json.loads(daemon.hermes("trace", name, "--json").stdout)["messages"]
    assert line["state"] == "answered"
    assert "no session" in daemon.hermes("trace", "run_bm9ib2R5AHR1cm4").stderr


def test_a_run_goes_on_in_its_session_and_is_one_run_under_one_key(daemon: DaemonProcess) -> None:
    daemon.ask("!echo before", session="one")
    body = {"input": "!history", "session_id": "one"}
    names = {daemon.request("POST", "/v1/runs", body, Idempotency_Key="k").json()["run_id"] for _ in range(2)}
    (name,) = names
    assert "!echo before" in ended(daemon, name)["output"]
    assert daemon.request("GET", "/v1/runs/run_nonsense").status == 404


def test_a_run_is_asked_answered_and_stopped(daemon: DaemonProcess) -> None:
    asking = daemon.request("POST", "/v1/runs", {"input": script(clarify("Which?", "a", "b"), "!history")}).json()
    eventually(lambda: run(daemon, asking["run_id"])["status"] == "waiting_for_answer")
    approval = daemon.request("POST", f"/v1/runs/{asking['run_id']}/approval", {"choice": "once"})
    assert approval.status == 409
    assert daemon.request("POST", f"/v1/runs/{asking['run_id']}/answer", {"answer": "1"}).status == 200
    assert "tool: a" in ended(daemon, asking["run_id"])["output"]
    sleeping = daemon.request("POST", "/v1/runs", {"input": script(terminal("sleep 60"), "!echo slept")}).json()
    eventually(lambda: session(daemon, sleeping["session_id"])["session"]["messages"] >= 2)
    stopped = daemon.request("POST", f"/v1/runs/{sleeping['run_id']}/stop")
    assert (stopped.status, stopped.json()["status"]) == (200, "cancelled")
    last = events(daemon.request("GET", f"/v1/runs/{sleeping['run_id']}/events"))[-1]
    assert (last[1], last[2]["error"]["code"]) == ("run.cancelled", "cancelled")


def test_a_run_that_fails_says_why(daemon: DaemonProcess) -> None:
    name = daemon.request("POST", "/v1/runs", {"input": "!fail policy"}).json()["run_id"]
    failed = ended(daemon, name)
    assert (failed["status"], failed["error"]["code"], failed["output"]) == ("failed", "content_filter", None)
