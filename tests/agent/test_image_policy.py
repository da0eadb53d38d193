"""Pictures go to models that see; the others get the text in which they are named."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from hermes.agent.chat_message import MEDIA_TOKENS, tokens_of
from hermes.agent.image_policy import MAX_BYTES, MAX_PICTURES, ImagePolicy, sees
from hermes.domain.media.reference import SCHEME, user_message
from hermes.domain.turn.message import EncodedMessage

JPEG = b"\xff\xd8\xff picture"


def stored(root: Path, number: int, data: bytes = JPEG) -> str:
    name = f"{number:064x}.jpg"
    (root / name).write_bytes(data)
    return name


def content(message: EncodedMessage) -> Any:
    return json.loads(message)["content"]


async def test_a_model_that_sees_is_shown_the_picture(tmp_path: Path) -> None:
    plain = user_message("hello")
    shown = await ImagePolicy(tmp_path).shown([plain, user_message("look", [stored(tmp_path, 1)])], sees=True)
    assert shown.pictures == 1
    assert shown.messages[0] is plain
    address = "data:image/jpeg;base64," + base64.b64encode(JPEG).decode()
    assert content(shown.messages[1]) == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": address}},
    ]


async def test_pictures_are_found_by_chat_and_in_the_folder_of_older_versions(tmp_path: Path) -> None:
    (tmp_path / "0123456789abcdef").mkdir()
    names = [stored(tmp_path, 1), f"0123456789abcdef/{stored(tmp_path / '0123456789abcdef', 2)}"]
    shown = await ImagePolicy(tmp_path).shown([user_message("look", names)], sees=True)
    assert shown.pictures == 2


async def test_a_model_that_does_not_see_gets_text_alone(tmp_path: Path) -> None:
    shown = await ImagePolicy(tmp_path).shown([user_message("look", [stored(tmp_path, 1)])], sees=False)
    assert [content(each) for each in shown.messages] == ["look"]
    assert shown.pictures == 0


async def test_a_picture_whose_file_is_gone_is_only_named(tmp_path: Path) -> None:
    shown = await ImagePolicy(tmp_path).shown([user_message("look", [f"{1:064x}.jpg"])], sees=True)
    assert content(shown.messages[0]) == "look"


async def test_only_the_newest_pictures_are_shown(tmp_path: Path) -> None:
    messages = [user_message(str(number), [stored(tmp_path, number)]) for number in range(MAX_PICTURES + 2)]
    shown = await ImagePolicy(tmp_path).shown(messages, sees=True)
    assert [isinstance(content(each), str) for each in shown.messages] == [True, True] + [False] * MAX_PICTURES
    assert shown.pictures == MAX_PICTURES
    big = [user_message(str(n), [stored(tmp_path, n, b"1" * (MAX_BYTES // 2))]) for n in range(3)]
    shown = await ImagePolicy(tmp_path).shown(big, sees=True)
    assert [isinstance(content(each), str) for each in shown.messages] == [True, False, False]


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "0" * 64 + "/x", "0" * 63, "../" + "0" * 64, "out/" + "0" * 64]
)
async def test_only_names_of_the_store_are_looked_up(name: str, tmp_path: Path) -> None:
    message = user_message("look", [name])
    assert (await ImagePolicy(tmp_path).shown([message], sees=True)).messages == [message]


async def test_words_that_look_like_a_picture_stay_words(tmp_path: Path) -> None:
    message = user_message(f"what is {SCHEME}{'0' * 64}?")
    assert (await ImagePolicy(tmp_path).shown([message], sees=True)).messages == [message]


def test_a_picture_counts_as_one_and_not_as_its_bytes() -> None:
    assert MEDIA_TOKENS < tokens_of(user_message("look", [f"{1:064x}.jpg"])) < MEDIA_TOKENS + 50


@pytest.mark.parametrize(
    ("name", "seeing"),
    [
        ("gpt-4o-mini", True),
        ("gpt-5", True),
        ("openai/o3", True),
        ("anthropic/claude-sonnet-4", True),
        ("qwen2.5-vl-7b", True),
        ("llava:13b", True),
        ("gpt-3.5-turbo", False),
        ("deepseek-chat", False),
        ("llama-3.1-8b", False),
        ("offline", False),
        ("scripted", False),
    ],
)
def test_whether_a_model_sees_is_told_by_its_name(name: str, seeing: bool) -> None:
    assert sees(name, "auto") is seeing
    assert sees(name, "always")
    assert not sees(name, "never")
