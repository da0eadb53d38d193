"""Where people may talk: places that are heard at all, and places that are open to whoever is there."""

from __future__ import annotations

from typing import Any, cast

import pytest

from hermes.adapters.chat.access import AccessControl
from hermes.app.factories.chat import make_door
from hermes.config.platforms.slack import SlackConfig
from hermes.config.platforms.telegram import TelegramConfig
from hermes.config.settings import Config
from hermes.domain.access.role import Role
from hermes.domain.ids import InboundKey
from hermes.domain.source import Place
from hermes.ports.chat import Inbound
from hermes.services.pairing import PairingService
from tests.adapters.chat.edge import did, edge


class Nobody:
    """Of whom none was let in."""

    async def role(self, platform: str, user: str) -> Role | None:
        return {("toy", "paired"): Role.GUEST, ("toy", "friend"): Role.USER}.get((platform, user))


NOBODY = cast("PairingService", Nobody())


def door(**settings: Any) -> AccessControl:
    return AccessControl(pairing=NOBODY, **{"allowed": ("ann",), **settings})


@pytest.mark.parametrize(("inbound", "heard"), [
    (did("ann", "x"), True),  # in private
    (did("ann", "x", "g"), True),
    (did("ann", "x", "g", thread="9"), True),
    (did("ann", "x", "h"), False),
    (did("boss", "x", "h"), False),
    (did("ann", "x", "h", thread="3"), True),
    (did("ann", "x", "h", thread="4"), False),
    (did("ann", "x", "moved", former_chat="g"), True),
    (did("eve", "x", "g"), False),  # being in the right place is not enough
])  # fmt: skip
async def test_where_places_are_named_no_other_group_is_heard(inbound: Inbound, heard: bool) -> None:
    assert (await door(places=("g", "h:3"), admins=("boss",)).role(inbound) is not None) is heard


@pytest.mark.parametrize(("inbound", "heard"), [
    (did("eve", "x", "g"), True),
    (did("eve", "x", "g", thread="9"), True),
    (did("eve", "x", "h"), False),
    (did("eve", "x", "g2", former_chat="g"), True),
    (did("eve", "x"), False),
    (did("eve", "x", "eve"), False),
])  # fmt: skip
async def test_in_an_open_place_everybody_may_talk_and_nowhere_else(inbound: Inbound, heard: bool) -> None:
    assert (await door(open_places=("g",)).role(inbound) is not None) is heard


async def test_by_default_no_one_is_admitted() -> None:
    assert await AccessControl(pairing=NOBODY).role(did("ann", "x", "g")) is None
    assert await AccessControl(pairing=NOBODY).role(did("ann", "x")) is None


async def test_a_place_that_is_open_but_not_heard_stays_closed() -> None:
    assert await door(places=("h",), open_places=("g",)).role(did("eve", "x", "g")) is None


@pytest.mark.parametrize(("user", "chat", "role"), [
    ("boss", "", Role.ADMIN),
    ("boss", "g", Role.ADMIN),
    ("ann", "", Role.USER),
    ("ann", "g", Role.USER),
    ("friend", "", Role.USER),
    ("paired", "", Role.GUEST),
    ("paired", "g", Role.GUEST),
    ("eve", "g", Role.GUEST),
    ("eve", "", None),
    ("eve", "h", None),
])  # fmt: skip
async def test_role_of_a_person(user: str, chat: str, role: Role | None) -> None:
    here = door(open_places=("g",), admins=("boss",))
    assert await here.role(did(user, "x", chat)) is role


async def test_everybody_whom_a_star_lets_in_is_a_guest() -> None:
    here = door(allowed=("ann", "*"))
    assert await here.role(did("ann", "x")) is Role.USER
    assert await here.role(did("eve", "x")) is Role.GUEST
    assert await here.role(did("friend", "x")) is Role.USER
    assert await here.role(did("*", "x")) is Role.GUEST


async def test_guest_of_an_open_place_cannot_set_the_home() -> None:
    async with edge(open_places=("g",)) as here:
        first = await here.says("eve", "hello", "g")
        assert await here.session(first) is not None
        await here.says("eve", "/sethome", "g")
        assert "/sethome is for the owner and the admins" in here.told("g")[-1]
        await here.says("eve", "/restart", "g")
        assert "/restart is for the owner and the admins" in here.told("g")[-1]
        await here.says("eve", "hello")
        assert await here.session(did("eve", "x")) is None


async def test_the_settings_of_a_platform_make_its_door() -> None:
    config = Config(
        telegram=TelegramConfig(allowed_chats=("-5",), open_chats=("-5:3",)),
        slack=SlackConfig(allowed_channels=("C1AB",), open_channels=("C1AB",), admins=("UANN",)),
    )
    telegram = make_door("telegram", config, NOBODY)
    assert (telegram.places, telegram.open_places) == (("-5",), ("-5:3",))
    slack = make_door("slack", config, NOBODY)
    for chat, heard in (("T1.C1AB", True), ("T1.C2AB", False)):
        place = Place(platform="slack", chat=chat, thread="1.2")
        inbound = Inbound(id=InboundKey("1"), place=place, user="UEVE", text="x", chat_type="thread")
        assert (await slack.role(inbound) is not None) is heard
