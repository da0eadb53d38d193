"""Histories are recognised by their content, whatever a client does to whitespace."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.domain.history.message_chain import SERVER_CALL, answered, begin, extend, key_of

USER = {"role": "user", "content": "Hello there"}
ANSWER = {"role": "assistant", "content": "One.\n\nTwo."}


def chain(*messages: dict[str, Any], scope: str = "api") -> bytes:
    return extend(begin(scope), messages)


def call(name: str, number: str) -> dict[str, Any]:
    return {"id": number, "type": "function", "function": {"name": name, "arguments": "{}"}}


@pytest.mark.parametrize(
    "messages",
    [
        ({"role": "user", "content": " Hello\n there "}, ANSWER),
        ({"role": "system", "content": "It is noon."}, USER, ANSWER),
        (USER, {"role": "assistant", "content": "One."}, {"role": "assistant", "content": "Two."}),
        (
            USER,
            {"role": "assistant", "content": "One.", "tool_calls": [call("ls", f"{SERVER_CALL}1")]},
            {"role": "tool", "tool_call_id": f"{SERVER_CALL}1", "content": "a file"},
            {"role": "assistant", "content": "Two."},
        ),
    ],
)
def test_equal_histories_have_equal_chains(messages: tuple[dict[str, Any], ...]) -> None:
    assert chain(*messages) == chain(USER, ANSWER)


@pytest.mark.parametrize(
    "messages",
    [
        (USER,),
        (ANSWER, USER),
        (USER, {**ANSWER, "content": "One. Three."}),
        (USER, {**ANSWER, "tool_calls": [call("ls", "1")]}),
        (USER, {**ANSWER, "role": "user"}),
    ],
)
def test_other_histories_have_other_chains(messages: tuple[dict[str, Any], ...]) -> None:
    assert chain(*messages) != chain(USER, ANSWER)


def test_scopes_never_meet() -> None:
    assert chain(USER, scope="api\0ann") != chain(USER, scope="api\0bob")


def test_a_stored_chain_is_extended_by_the_answer_alone() -> None:
    assert answered(extend(begin("api"), [USER]), "One. Two.") == chain(USER, ANSWER)
    calls = [call("ls", "1")]
    with_calls = {"role": "assistant", "content": None, "tool_calls": calls}
    assert key_of(answered(extend(begin("api"), [USER]), "", calls)) == key_of(
        extend(begin("api"), [USER, with_calls])
    )
