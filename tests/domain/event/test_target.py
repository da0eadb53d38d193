"""Delivery targets and the channel directory."""

from __future__ import annotations

import pytest

from hermes.domain.event.channel import Channel, channel_of, decode_channel, named
from hermes.domain.event.target import DeliveryTarget, TargetKind, parse_target, parse_targets
from hermes.domain.source import ChatContext, Place, Source


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("home", DeliveryTarget(kind=TargetKind.HOME)),
        ("telegram", DeliveryTarget(kind=TargetKind.HOME, platform="telegram")),
        ("local", DeliveryTarget(kind=TargetKind.LOCAL)),
        ("telegram:-1001", DeliveryTarget(kind=TargetKind.CHAT, platform="telegram", chat="-1001")),
        ("telegram:-1001:17", DeliveryTarget(kind=TargetKind.CHAT, platform="telegram", chat="-1001", thread="17")),
        ("slack:#ops", DeliveryTarget(kind=TargetKind.CHAT, platform="slack", chat="#ops")),
        ("slack:C1:17.25", DeliveryTarget(kind=TargetKind.CHAT, platform="slack", chat="C1", thread="17.25")),
        ("slack:T1:C1", DeliveryTarget(kind=TargetKind.CHAT, platform="slack", chat="T1:C1")),
        ("telegram:Ann Bee", DeliveryTarget(kind=TargetKind.CHAT, platform="telegram", chat="Ann Bee")),
    ],
)
def test_target_is_read_as_people_write_it(text: str, target: DeliveryTarget) -> None:
    assert parse_target(text) == target
    assert parse_target(str(target)) == target


@pytest.mark.parametrize("text", ["", "telegram:", ":x", "my chat"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a delivery target"):
        parse_target(text)


def test_several_targets_have_commas_and_no_doubles() -> None:
    assert [str(each) for each in parse_targets(("home, slack:#ops", "home"))] == ["home", "slack:#ops"]


def test_channel_is_learned_from_a_message() -> None:
    place = Place(platform="telegram", chat="-5", thread="9")
    group = Source(platform="telegram", place=place, company=ChatContext(kind="group", chat=" Team  A "), name="Ann")
    found = channel_of(group, 1.0)
    assert found == Channel(platform="telegram", chat="-5", name="Team A", kind="group", at=1.0)
    assert decode_channel(found.fact, found.encoded()) == found
    private = Source(platform="telegram", place=place, company=ChatContext(kind="dm"), name="Ann")
    assert channel_of(private, 1.0) == Channel(platform="telegram", chat="-5", name="Ann", kind="dm", at=1.0)
    assert channel_of(Source(platform="api"), 1.0) is None


def test_name_or_id_finds_the_channels_of_a_platform() -> None:
    ops, two, other = (
        Channel(platform="slack", chat="C1", name="ops"),
        Channel(platform="slack", chat="C2", name="C1"),
        Channel(platform="telegram", chat="C1", name="ops"),
    )
    assert named([ops, two, other], "slack", "#OPS") == [ops]
    assert named([ops, two, other], "slack", "C1") == [ops]  # an id goes before a name
    assert named([ops, two, other], "slack", "none") == []
