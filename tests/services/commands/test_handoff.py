"""Commands /handoff and /platforms: a conversation moves to another platform and back."""

from __future__ import annotations

from dataclasses import replace

from hermes.domain.access import home_channel
from hermes.domain.access.role import Role
from hermes.domain.ids import SessionKey
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.records import HandedOver, LogEntry
from hermes.domain.source import ChatContext, Place, Source
from tests.services.commands.harness import ANN, BOB, CommandHarness, world

HOME = Place(platform="telegram", chat="77")
HOMES = "agent:main:telegram:dm:77"
CHAT = Place(platform="slack", chat="C1")
CHATS = "agent:main:slack:dm:C1"
BOSS = Source(platform="slack", user="boss", role=Role.ADMIN, place=CHAT)
BOSS_THERE = Source(platform="telegram", user="boss", role=Role.ADMIN, place=HOME)


async def set_home(here: CommandHarness) -> None:
    await here.command("/sethome", key=HOMES, source=BOSS_THERE)


async def notices(here: CommandHarness) -> list[OutboxMessage]:
    found = await here.journal.fetch(lambda reader: reader.outbox())
    return sorted((each for each in found if "handover" in each.id), key=lambda each: each.id)


async def test_conversation_moves_to_the_home_channel_and_both_chats_are_told() -> None:
    async with world() as here:
        await set_home(here)
        before = await here.talk("hello there", key=HOMES, source=BOSS_THERE)
        session = await here.talk("a plan", key=CHATS, source=BOSS)
        await here.command("/title The plan", key=CHATS, source=BOSS)
        reply = await here.command("/handoff telegram", key=CHATS, source=BOSS)
        assert (reply.ok, reply.text) == (True, "")  # the outbox tells the chat
        assert await here.desk.bound(SessionKey(HOMES)) == session
        assert await here.desk.bound(SessionKey(CHATS)) == session
        old, new = await notices(here)
        assert (old.place, new.place) == (CHAT, HOME)
        assert "continues in telegram, chat 77" in old.text
        assert "“The plan” continues here" in new.text
        assert f"/resume {before}" in new.text
        why = (await here.command("/why", key=HOMES, source=BOSS_THERE)).text
        assert "handed over from slack, chat C1 to telegram, chat 77: /handoff by slack:boss" in why


async def test_message_in_the_new_chat_continues_the_conversation() -> None:
    async with world() as here:
        await set_home(here)
        session = await here.talk("a plan", key=CHATS, source=BOSS)
        await here.command("/handoff telegram", key=CHATS, source=BOSS)
        assert await here.talk("and then?", key=HOMES, source=BOSS_THERE) == session
        assert await here.transcript(session) == ["a plan", "about a plan", "and then?", "about and then?"]


async def test_back_returns_it_to_where_it_came_from() -> None:
    async with world() as here:
        await set_home(here)
        session = await here.talk("a plan", key=CHATS, source=BOSS)
        await here.command("/handoff telegram", key=CHATS, source=BOSS)
        assert (await here.command("/handoff back", key=HOMES, source=BOSS_THERE)).ok
        assert await here.desk.bound(SessionKey(CHATS)) == session
        assert (await here.session(session)).place == CHAT
        assert len(await notices(here)) == 4


async def test_conversation_of_a_terminal_moves_and_its_reply_says_so() -> None:
    async with world() as here:
        await set_home(here)
        session = await here.talk("a plan", "s")
        reply = await here.command("/handoff telegram", session)
        assert reply.text == "This conversation continues in telegram, chat 77, too."
        assert [each.place for each in await notices(here)] == [HOME]
        back = await here.command("/handoff back", key=HOMES, source=BOSS_THERE)
        assert f"hermes chat -r {session}" in back.text


async def test_handover_is_one_transaction() -> None:
    async with world() as here:
        await set_home(here)
        session = await here.talk("a plan", key=CHATS, source=BOSS)
        await here.command("/handoff telegram", key=CHATS, source=BOSS)
        log: list[LogEntry] = await here.journal.fetch(lambda reader: reader.log(session))
        assert sum(isinstance(entry.record, HandedOver) for entry in log) == 1


async def test_handoff_is_refused_with_a_reason() -> None:
    async with world() as here:
        assert "no conversation here" in (await here.command("/handoff telegram", key=CHATS, source=BOSS)).text
        session = await here.talk("a plan", key=CHATS, source=BOSS)
        assert "/handoff telegram or /handoff slack" in (await here.command("/handoff", key=CHATS, source=BOSS)).text
        assert "has no home channel" in (await here.command("/handoff telegram", key=CHATS, source=BOSS)).text
        assert "no chat platform discord" in (await here.command("/handoff discord", key=CHATS, source=BOSS)).text
        assert "was not handed over" in (await here.command("/handoff back", key=CHATS, source=BOSS)).text
        assert "Another user started" in (await here.command("/handoff telegram", session, source=ANN)).text
        old = home_channel.encode(HOME)  # stored before the key of the conversation was
        await here.desk.remember(home_channel.fact_of("telegram"), old)
        assert "Send /sethome there" in (await here.command("/handoff telegram", key=CHATS, source=BOSS)).text
        await set_home(here)
        await here.command("/handoff telegram", key=CHATS, source=BOSS)
        again = await here.command("/handoff telegram", key=HOMES, source=BOSS_THERE)
        assert "in telegram, chat 77 already" in again.text


# ---------------------------------------------------------------- any chat


def ann_in(chat: str, *, name: str = "") -> Source:
    place = Place(platform="telegram", chat=chat)
    return replace(ANN, place=place, company=ChatContext(kind="group", chat=name))


async def move(here: CommandHarness, text: str, key: str, source: Source) -> str:
    reply = await here.command(f"/handoff {text}", key=key, source=source)
    return "" if reply.ok else reply.text


async def test_admin_moves_a_conversation_to_any_known_chat_by_id_or_name_and_back() -> None:
    family = "agent:main:telegram:group:-5:ann"
    async with world() as here:
        before = await here.talk("hi", key=family, source=ann_in("-5", name="Family\x1b chat"))
        session = await here.talk("a plan", key=CHATS, source=BOSS)
        shown = (await here.command("/handoff", key=CHATS, source=BOSS)).text
        assert "/handoff telegram or /handoff slack" in shown
        assert "  /handoff telegram -5  Family chat" in shown
        assert "slack C1" not in shown  # the conversation is there
        for wanted in ("-5", "family chat", "group:-5:ann", "Fam"):
            assert await move(here, f"telegram {wanted}", CHATS, BOSS) == ""
            assert await here.desk.bound(SessionKey(family)) == session
            there = replace(BOSS_THERE, place=Place(platform="telegram", chat="-5"))
            assert await move(here, "back", family, there) == ""
            assert (await here.session(session)).place == CHAT
            await here.command(f"/resume {before}", key=family, source=ann_in("-5"))
        assert "no chat “-6” on telegram" in await move(here, "telegram -6", CHATS, BOSS)


async def test_user_moves_a_conversation_to_an_own_chat_only() -> None:
    own, group = "agent:main:telegram:dm:1", "agent:main:telegram:group:-5:ann"
    async with world() as here:
        await set_home(here)
        bobs = replace(BOB, place=Place(platform="telegram", chat="2"))
        await here.talk("mine", key="agent:main:telegram:dm:2", source=bobs)
        await here.talk("hi", key=group, source=ann_in("-5", name="Family"))
        session = await here.talk("a plan", key=own, source=ann_in("1"))
        shown = (await here.command("/handoff", key=own, source=ann_in("1"))).text
        assert shown == "Move this conversation to a chat:\n  /handoff telegram -5  Family"
        assert "for the owner and admins" in await move(here, "telegram", own, ann_in("1"))
        assert "You have no chat “2” on telegram" in await move(here, "telegram 2", own, ann_in("1"))
        assert await move(here, "telegram -5", own, ann_in("1")) == ""
        assert await here.desk.bound(SessionKey(group)) == session
        assert await move(here, "back", group, ann_in("-5")) == ""
        assert (await here.session(session)).place == Place(platform="telegram", chat="1")


async def test_person_in_a_group_of_several_is_asked_or_meant() -> None:
    async with world() as here:
        for who, source in (("ann", ANN), ("bob", BOB)):
            place = Place(platform="telegram", chat="-5")
            await here.talk("hi", key=f"agent:main:telegram:group:-5:{who}", source=replace(source, place=place))
        await here.talk("a plan", key=CHATS, source=BOSS)
        several = await move(here, "telegram -5", CHATS, BOSS)
        assert "/handoff telegram group:-5:ann" in several
        assert "/handoff telegram group:-5:bob" in several
        session = await here.talk("a plan", key="agent:main:telegram:dm:1", source=ann_in("1"))
        assert await move(here, "telegram -5", "agent:main:telegram:dm:1", ann_in("1")) == ""
        assert await here.desk.bound(SessionKey("agent:main:telegram:group:-5:ann")) == session


async def test_conversation_with_a_running_turn_stays() -> None:
    async with world() as here:
        await set_home(here)
        receipt = await here.say("a plan", key=CHATS, source=BOSS)
        reply = await here.command("/handoff telegram", key=CHATS, source=BOSS)
        assert not reply.ok
        assert await here.desk.bound(SessionKey(HOMES)) is None
        assert (await here.session(receipt.session)).handover is None


async def test_platforms_shows_states_and_problems_to_those_who_approve() -> None:
    async with world() as here:
        await set_home(here)
        shown = (await here.command("/platforms", key=CHATS, source=BOSS)).text
        assert shown == "telegram: running, home channel set\nslack: down, no home channel (/sethome). no network"
        assert (
            "no network" not in (await here.command("/platforms", key="agent:main:telegram:dm:ann", source=ANN)).text
        )
        here.platforms = []
        for command in ("/platforms", "/handoff"):
            reply = await here.command(command, key=CHATS, source=BOSS)
            assert reply.text == "No chat platform is set up. `hermes setup` sets one up."
