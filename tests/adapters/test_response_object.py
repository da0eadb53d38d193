"""A response is what the journal says about its turn, streamed or read back."""

from __future__ import annotations

import json
from typing import Any

from hermes.adapters.openai_api.responses.response_events import ResponseEvents
from hermes.adapters.openai_api.responses.response_items import response_of_item
from hermes.adapters.openai_api.responses.response_object import Answering
from hermes.adapters.openai_api.responses.response_reader import input_of, page_of
from hermes.adapters.openai_api.responses.response_stream import unseen
from hermes.adapters.openai_api.turns.stream_cursor import STARTS_AGAIN
from hermes.domain.events import CallProgress, TextReset, TurnGaveUp
from hermes.domain.records import ToolFinished, TurnFailed, TurnFinished
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.tool_call import CallOutcome
from hermes.domain.turn.turn_failure import Failure, FailureKind
from tests.adapters.a_call import a_call
from tests.adapters.turn_script import S, T, TurnScript
from tests.support.fakes import NOW

ANSWERING = Answering(id="resp_x", turn=T, session=S)


def a_turn(finish_reason: str = "stop") -> TurnScript:
    """Two replies with the same id for their calls, and an answer."""
    script = TurnScript()
    script.begin(metadata={"k": "v"}, model="hermes")
    for text in ("Let me look.", ""):
        script.ask_for(a_call(), text)
        script.start(a_call())
        script.finish(a_call(), "a file")
    script.end("Found it.", finish_reason)
    return script


def told(script: TurnScript) -> dict[str, Any]:
    return ANSWERING.object(script.desk.turn_records[T])


def test_server_tools_are_mcp_calls_between_the_texts() -> None:
    response = told(a_turn())
    assert (response["status"], response["metadata"], response["model"]) == ("completed", {"k": "v"}, "hermes")
    assert [(item["type"], item["id"]) for item in response["output"]] == [
        ("message", "msg_x_0"),
        ("mcp_call", "mcp_x_0_0"),
        ("mcp_call", "mcp_x_1_0"),
        ("message", "msg_x_2"),
    ]
    call = response["output"][1]
    assert (call["server_label"], call["name"], call["output"], call["error"]) == (
        "hermes",
        "terminal",
        "a file",
        None,
    )
    assert response["output"][-1]["content"][0]["text"] == "Found it."
    assert (response["usage"]["input_tokens"], response["usage"]["total_tokens"]) == (17, 21)
    assert response["created_at"] == int(NOW)


def test_a_failed_call_has_an_error_and_one_without_a_result_is_incomplete() -> None:
    script = TurnScript()
    script.begin()
    script.ask_for(a_call())
    assert [item["status"] for item in told(script)["output"]] == ["in_progress"]
    message = EncodedMessage(b'{"role":"tool","tool_call_id":"c1","content":"no such file"}')
    failed = ToolFinished(at=NOW, turn=T, call="c1", message=message, outcome=CallOutcome.ERROR, name="tool")
    script.store(failed)
    script.ask_for(a_call())
    script.store(TurnFailed(at=NOW, turn=T, failure=Failure(kind=FailureKind.CANCELLED, message="stopped")))
    first, second = told(script)["output"]
    assert (first["status"], first["output"]) == ("failed", None)
    assert first["error"]["content"] == [{"type": "text", "text": "no such file"}]
    assert (second["status"], second["error"]) == ("incomplete", None)


def test_how_it_stands_is_said_in_openais_words() -> None:
    script = TurnScript()
    script.begin()
    assert (told(script)["status"], told(script)["usage"]) == ("in_progress", None)
    assert ANSWERING.object(script.desk.turn_records[T][:1])["status"] == "queued"
    cut = told(a_turn("length"))
    assert (cut["status"], cut["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    script.store(TurnFailed(at=NOW, turn=T, failure=Failure(kind=FailureKind.POLICY, message="no")))
    failed = told(script)
    assert (failed["status"], failed["error"]) == ("failed", {"code": "content_filter", "message": "no"})


def test_a_response_that_ends_with_a_question_is_complete() -> None:
    script = TurnScript()
    script.begin()
    response = ANSWERING.object(script.desk.turn_records[T], asked=script.asked(a_call(), "rm -rf x"))
    assert "rm -rf x" in response["output"][-1]["content"][0]["text"]
    assert response["hermes"]["pending"]["call_id"] == "c1"
    assert response["status"] == "completed"


# ---------------------------------------------------------------- streamed


def streamed(script: TurnScript, *live: Any, own_events: bool = False) -> list[dict[str, Any]]:
    """What is said live comes before the record that ends the reply."""
    events = ResponseEvents(ANSWERING, own_events=own_events)
    received = list(events.begin(script.desk.turn_records[T]))
    pieces = list(live)
    for record in script.desk.turn_records[T]:
        if type(record.record).__name__ in ("ModelReplied", "TurnFinished"):
            while pieces and pieces[0] is not None:
                received += events.of_update(pieces.pop(0))
            pieces[:1] = []
        received += events.of_update(record)
    assert events.over
    return received


def deltas(received: list[dict[str, Any]]) -> str:
    return "".join(event["delta"] for event in received if event["type"] == "response.output_text.delta")


def test_response_stream_ends_with_the_stored_response() -> None:
    script = a_turn()
    received = streamed(script, "Let me ", "look.", None, None, "Found")
    numbers = [event["sequence_number"] for event in received]
    assert numbers == sorted(set(numbers))
    assert received[-1]["type"] == "response.completed"
    assert received[-1]["response"] == told(script)
    done = [event["item"] for event in received if event["type"] == "response.output_item.done"]
    assert done == told(script)["output"]
    indexes = [event["output_index"] for event in received if event["type"] == "response.output_item.added"]
    assert indexes == list(range(len(done)))
    assert deltas(received) == "Let me look.Found it."
    assert not [event for event in received if event["type"].startswith("hermes.")]


def test_a_later_stream_has_the_same_numbers_and_can_start_anywhere() -> None:
    live = streamed(a_turn(), "Let", " me ", "look.", None, None, "Found")
    later = streamed(a_turn())
    assert live[-1] == later[-1]
    for place, event in enumerate(live):
        left = [part for each in later if (part := unseen(each, event["sequence_number"])) is not None]
        assert deltas(live[: place + 1]) + deltas(left) == deltas(live)
        assert left[-1]["type"] == "response.completed"


def test_calls_for_the_client_are_function_calls() -> None:
    script = TurnScript()
    script.begin()
    script.ask_for(a_call())
    script.finish(a_call(), "a file")
    function = {"name": "clock", "arguments": "{}"}
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "c9", "function": function}]}
    end = TurnFinished(
        at=NOW,
        turn=T,
        message=EncodedMessage(json.dumps(message).encode()),
        model="m",
        finish_reason="tool_calls",
    )
    script.store(end)
    first, second = told(script)["output"]
    assert first["type"] == "mcp_call"
    assert (second["type"], second["call_id"], second["name"]) == ("function_call", "c9", "clock")
    received = streamed(script)
    assert [event["type"] for event in received if event.get("output_index") == 1] == [
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
    ]
    assert response_of_item(second["id"]) is None  # "resp_x" is not the id of a response


def test_pages_of_input_items() -> None:
    items = input_of([EncodedMessage(b'{"role":"user","content":"%d"}' % number) for number in range(3)], "x")
    assert [item["content"][0]["text"] for item in items] == ["0", "1", "2"]
    first = page_of(items, 2, "")
    assert (len(first["data"]), first["has_more"]) == (2, True)
    second = page_of(items, 2, first["last_id"])
    assert ([item["id"] for item in second["data"]], second["has_more"]) == ([items[2]["id"]], False)
    assert page_of(items, 2, "unknown")["data"] == []


def test_stream_of_a_call_has_the_standard_events() -> None:
    of_call = [event for event in streamed(a_turn()) if event.get("output_index") == 1]
    assert [event["type"] for event in of_call] == [
        "response.output_item.added",
        "response.mcp_call.in_progress",
        "response.mcp_call_arguments.delta",
        "response.mcp_call_arguments.done",
        "response.mcp_call.completed",
        "response.output_item.done",
    ]
    assert {event.get("item_id", "mcp_x_0_0") for event in of_call} == {"mcp_x_0_0"}


def test_own_events_are_sent_to_a_client_that_asked_for_them() -> None:
    received = streamed(a_turn(), own_events=True)
    ours = [event["type"] for event in received if event["type"].startswith("hermes.")]
    assert ours == ["hermes.tool.started", "hermes.tool.completed"] * 2


def test_stream_can_end_with_a_question() -> None:
    script = TurnScript()
    script.begin()
    script.ask_for(a_call())
    events = ResponseEvents(ANSWERING)
    received = [*events.begin([]), *(e for r in script.desk.turn_records[T] for e in events.of_update(r))]
    received += events.of_question(script.asked(a_call(), "rm -rf x"))
    assert events.over
    assert "rm -rf x" in deltas(received)
    assert received[-1]["type"] == "response.completed"
    done = [event["item"] for event in received if event["type"] == "response.output_item.done"]
    assert done == received[-1]["response"]["output"]
    assert [item["type"] for item in done] == ["mcp_call", "message"]


def test_a_reply_that_broke_off_goes_on_or_is_sent_whole() -> None:
    reset = TextReset(session=S, turn=T)
    assert deltas(streamed(a_turn(), "Let", reset, "Let me ", None)) == "Let me look.Found it."
    received = streamed(a_turn(), "Something else", reset, "Let me ", None)
    assert deltas(received) == f"Something else{STARTS_AGAIN}Let me look.Found it."
    done = [event["text"] for event in received if event["type"] == "response.output_text.done"]
    assert done == ["Let me look.", "Found it."]


def test_progress_and_an_end_without_a_record_are_told() -> None:
    events = ResponseEvents(ANSWERING, own_events=True)
    list(events.begin([]))
    (progress,) = events.of_update(CallProgress(session=S, turn=T, call="c1", text="half"))
    assert (progress["type"], progress["text"]) == ("hermes.tool.progress", "half")
    suspended = Failure(kind=FailureKind.SUSPENDED, message="later")
    (end,) = events.of_update(TurnGaveUp(session=S, turn=T, failure=suspended))
    assert (end["type"], end["response"]["error"]["code"]) == ("response.failed", "session_suspended")
    assert events.over
