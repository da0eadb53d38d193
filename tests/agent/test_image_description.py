from __future__ import annotations

import json
from pathlib import Path

from hermes.agent.image_description import ImageDescriptions
from hermes.agent.image_policy import MAX_PICTURES, ImagePolicy
from hermes.domain.media.reference import content_of
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.turn_failure import Failure, FailureKind
from tests.agent.harness import AgentBench, ScriptedModel, broken, says, thinking_settings, user


def name(number: int) -> str:
    return f"{number:064x}.jpg"


def pictures(*numbers: int) -> EncodedMessage:
    content = content_of("look", [name(number) for number in numbers])
    return EncodedMessage(json.dumps({"role": "user", "content": content}).encode())


def text(message: EncodedMessage) -> str:
    content: str = json.loads(message)["content"]
    return content


class Describer:
    def __init__(self) -> None:
        self.asked = 0
        self.fails = False

    async def __call__(self, question: EncodedMessage) -> str | Failure:
        self.asked += 1
        assert json.loads(question)["content"][1]["type"] == "image_url"
        return Failure(kind=FailureKind.AUTH, message="no") if self.fails else f"a tree {self.asked}"


async def test_a_picture_is_described_once() -> None:
    known, describe = ImageDescriptions(), Describer()
    talk = [user("hi"), pictures(1), user("and?"), pictures(2)]
    first = await known.told(talk, describe)
    assert (first[0], first[2]) == (talk[0], talk[2])
    assert "a tree 2" in text(first[1])
    assert "a tree 1" in text(first[3])
    assert await known.told(talk, describe) == first
    assert describe.asked == 2


async def test_a_failure_is_told_and_tried_again_later() -> None:
    known, describe = ImageDescriptions(), Describer()
    describe.fails = True
    assert "could not be described: auth" in text((await known.told([pictures(1)], describe))[0])
    describe.fails = False
    assert "a tree" in text((await known.told([pictures(1)], describe))[0])


async def test_only_the_newest_pictures_are_described() -> None:
    describe = Describer()
    old, *_ = await ImageDescriptions().told([pictures(0), pictures(*range(1, MAX_PICTURES + 1))], describe)
    assert describe.asked == MAX_PICTURES
    assert old == pictures(0)


async def test_the_vision_model_sees_for_a_model_that_cannot(tmp_path: Path) -> None:
    (tmp_path / name(1)).write_bytes(b"jpeg")
    model = ScriptedModel(says("a red house"), says("It is red."), name="blind")
    settings = thinking_settings(vision_model="gpt-4o")
    bench = AgentBench(tmp_path, model, settings=settings, sight=ImagePolicy(tmp_path))
    report = await bench.think(messages=(pictures(1),))
    assert report.text == "It is red."
    asked, answered = model.requests
    assert asked.model == "gpt-4o"
    assert "data:image/jpeg;base64" in asked.messages[0].decode()
    assert "a red house" in answered.messages[-1].decode()
    assert "base64" not in answered.messages[-1].decode()


async def test_a_vision_model_that_fails_does_not_fail_the_turn(tmp_path: Path) -> None:
    (tmp_path / name(1)).write_bytes(b"jpeg")
    model = ScriptedModel((broken(FailureKind.AUTH),), says("I cannot see it."), name="blind")
    settings = thinking_settings(vision_model="gpt-4o")
    report = await AgentBench(tmp_path, model, settings=settings, sight=ImagePolicy(tmp_path)).think(
        messages=(pictures(1),)
    )
    assert report.text == "I cannot see it."
