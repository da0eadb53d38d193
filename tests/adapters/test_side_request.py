"""Recognition of side requests of chat programs."""

from __future__ import annotations

import pytest

from hermes.adapters.openai_api.turns.conversation_input import split
from hermes.adapters.openai_api.turns.side_request import is_side_request

TAGS = (
    "### Task:\nGenerate 1-3 broad tags for the chat.\n\n### Chat History:\n<chat_history>\nUSER: hi\n</chat_history>"
)
FOLLOW_UPS = (
    "### Task:\nSuggest 3-5 follow-up questions.\n### Output:\nJSON\n<chat_history>\nUSER: hi\n</chat_history>"
)
TITLE = "Provide a concise, 5-word-or-less title for the conversation, in its language.\n\nConversation:\nUser: hi"


@pytest.mark.parametrize("text", [TAGS, FOLLOW_UPS, TITLE])
def test_titles_tags_and_follow_ups_are_side_requests(text: str) -> None:
    system = {"role": "system", "content": "You write titles."}
    assert is_side_request(split([{"role": "user", "content": text}], "messages"))
    assert is_side_request(split([system, {"role": "user", "content": text}], "messages"))


@pytest.mark.parametrize(
    "text",
    [
        "hi",
        "### Task:\nTidy up the folder.",
        "Write a title for my talk about chat programs",
        "Create a chat program with tags",
        "Please explain <chat_history> in Open WebUI",
    ],
)
def test_words_of_people_are_not(text: str) -> None:
    assert not is_side_request(split([{"role": "user", "content": text}], "messages"))


def test_a_history_is_a_conversation() -> None:
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    assert not is_side_request(split([*messages, {"role": "user", "content": TAGS}], "messages"))
