"""What people do on a platform, each for themselves: conversations, commands, buttons, bursts and edits."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from hermes.adapters.chat.coalescing import WAIT_S, Bursts, is_cut_off
from hermes.adapters.chat.confirmation import VALID_S
from hermes.adapters.chat.conversation_key import conversation_key
from hermes.domain.access.question import button_token, token_of
from hermes.domain.ids import InboundKey, TurnId
from hermes.ports.chat import Attachment, Inbound
from tests.actors.talk import needs_leave
from tests.adapters.chat.edge import Edge, did, edge
from tests.support.fakes import process_view

# ---------------------------------------------------------------- who talks where


@pytest.mark.parametrize(("inbound", "per_user", "key"), [
    (did("ann", "x"), True, "agent:main:toy:dm:ann"),
    (did("ann", "x"), False, "agent:main:toy:dm:ann"),
    (did("ann", "x", "g"), True, "agent:main:toy:group:g:ann"),
    (did("bob", "x", "g"), True, "agent:main:toy:group:g:bob"),
    (did("ann", "x", "g"), False, "agent:main:toy:group:g"),
    (did("ann", "x", "g", thread="t"), True, "agent:main:toy:thread:g:t"),
    (did("bob", "x", "g", thread="t"), True, "agent:main:toy:thread:g:t"),
])  # fmt: skip
def test_a_conversation_is_who_talks_where(inbound: object, per_user: bool, key: str) -> None:
    assert conversation_key(inbound, group_sessions_per_user=per_user) == key  # type: ignore[arg-type]


async def test_in_a_group_each_person_has_a_conversation_of_their_own() -> None:
    async with edge() as here:
        first, second = await here.says("ann", "a", "g"), await here.says("bob", "b", "g")
        anns, bobs = await here.session(first), await here.session(second)
        assert anns is not None
        assert bobs is not None
        assert anns != bobs
        assert (await here.here.session(anns)).owner == "ann"


async def test_a_group_can_share_one_conversation_and_a_thread_always_does() -> None:
    async with edge(per_user=False) as here:
        await here.says("ann", "a", "g")
        second = await here.says("bob", "b", "g")
        session = await here.session(second, group_sessions_per_user=False)
        assert session is not None
        assert len((await here.here.session(session)).queue) == 1  # behind ann's
    async with edge() as here:
        first, second = await here.says("ann", "a", "g", thread="t"), await here.says("bob", "b", "g", thread="t")
        assert await here.session(first) == await here.session(second)


async def test_a_chat_that_has_moved_goes_on_with_its_conversations() -> None:
    async with edge() as here:
        before = await here.says("ann", "a", "g")
        await here.desk.chat_moved("g", "g2")
        here.restart()
        assert (await here.desk.former_id("g2"), await here.desk.former_id("g")) == ("g", "")
        after = await here.says("ann", "b", "g2", former_chat=await here.desk.former_id("g2"))
        assert await here.session(after) == await here.session(before)
        await here.desk.chat_moved("g2", "g3")
        assert await here.desk.former_id("g3") == "g"


async def test_adapter_reads_recent_places_and_saved_notes() -> None:
    async with edge() as here:
        first, second = await here.says("ann", "a", "g", thread="t"), await here.says("bob", "b")
        await here.desk.note("slack.x", b"1")
        here.restart()
        assert (await here.desk.noted("slack.x"), await here.desk.noted("slack.y")) == (b"1", None)
        assert set(await here.desk.places("toy", 9)) == {first.place, second.place}
        assert len(await here.desk.places("toy", 1)) == 1
        assert await here.desk.places("other", 9) == []


async def test_sessions_of_other_people_are_hidden() -> None:
    async with edge() as here:
        anns = await here.session(await here.says("ann", "my secret"))
        await here.here.answer()
        await here.says("bob", "hello")
        await here.here.answer()
        await here.says("bob", "/sessions")
        assert str(anns) not in here.told("bob")[-1]
        await here.says("bob", f"/resume {anns}")
        assert "no conversation with the id" in here.told("bob")[-1]
        again = await here.says("bob", "hello again")
        assert await here.session(again) != anns


# ---------------------------------------------------------------- who decides


async def asked_in_a_thread(here: Edge) -> str:
    """Ann's turn wants to run something, in a thread that she shares. Returns the button's token."""
    first = await here.says("ann", "do it", "g", thread="t")
    await here.here.answer("", needs_leave("c1"))
    session = await here.session(first)
    assert session is not None
    turn = (await here.here.session(session)).turn
    assert turn is not None
    return button_token(turn.id, "c1")


async def test_only_the_starter_can_press_buttons_in_a_shared_conversation() -> None:
    async with edge(admins=("ann",)) as here:
        token = await asked_in_a_thread(here)
        await here.says("bob", "once", "g", thread="t", answers=token)
        assert here.here.agent.acts == []
        assert here.aside == "Only the person who started the conversation can answer this."
        await here.says("eve", "once", "g", thread="t", answers=token)  # who may not talk here
        assert here.aside == "Only the person who started the conversation can answer this."
        pressed = await here.says("ann", "once", "g", thread="t", answers=token)
        assert here.aside == ""
        await here.here.finish_tool()
        assert "no longer open" in await here.desk.take(pressed)  # comes again
        assert (
            here.outgoing == []
        )  # nothing was said to all; the session's own record has the question say its answer


async def test_button_of_another_persons_group_conversation_does_nothing() -> None:
    async with edge() as here:
        first = await here.says("ann", "do it", "g")
        await here.here.answer("", needs_leave("c1"))
        session = await here.session(first)
        assert session is not None
        turn = (await here.here.session(session)).turn
        assert turn is not None
        await here.says("bob", "once", "g", answers=button_token(turn.id, "c1"))
        assert here.here.agent.acts == []
        assert here.aside == "Only the owner and the admins of this Hermes can answer this."
        assert here.outgoing == []


@pytest.mark.parametrize("command", ["/approve", "/yolo on", "/processes kill 1"])
async def test_other_members_of_a_thread_do_not_decide_what_runs_in_it(command: str) -> None:
    async with edge() as here:
        await asked_in_a_thread(here)
        await here.says("bob", command, "g", thread="t")
        assert here.here.agent.acts == []
        session = await here.session(did("ann", "x", "g", thread="t"))
        assert session is not None
        assert not (await here.here.session(session)).preferences.yolo


async def test_thread_members_can_stop_a_shared_turn() -> None:
    async with edge() as here:
        await here.says("ann", "hello", "g", thread="t")
        await here.says("eve", "/stop", "g", thread="t")  # who may not talk there is not heard
        await here.says("bob", "/stop", "g")
        assert here.told("g") == ["Nothing is running."]
        await here.says("bob", "/stop", "g", thread="t")
        assert "Stopped." in here.told("g")
        await here.says("ann", "hello", "g")
        await here.says("bob", "/new", "g")
        session = await here.session(did("ann", "x", "g"))
        assert session is not None
        assert (await here.here.session(session)).turn is not None


async def test_what_is_queued_by_a_command_is_taken() -> None:
    async with edge() as here:
        await here.says("ann", "a")
        await here.says("ann", "/queue b")
        assert here.told("ann")[-1].startswith("Queued.")


async def test_only_admins_restart_the_daemon_and_choose_its_home() -> None:
    async with edge(admins=("ann",)) as here:
        await here.says("bob", "/restart")
        assert "/restart is for the owner and the admins" in here.told("bob")[-1]
        await here.says("bob", "/sethome")
        assert "/sethome is for the owner and the admins" in here.told("bob")[-1]
        await here.says("ann", "/sethome")
        assert await here.homes.places() == [did("ann", "x", message="").place]


# ---------------------------------------------------------------- albums


def album(*numbers: int, spoken: int = 0) -> Inbound:
    """Pictures that came one by one, the caption with one of them."""
    inbound = did("ann", "look" if spoken else "", number=spoken or numbers[0])
    pieces = tuple(InboundKey(f"toy:{number}") for number in numbers)
    files = tuple(Attachment(kind="image", file_id=str(number)) for number in numbers)
    return replace(inbound, pieces=pieces, attachments=files)


@pytest.mark.parametrize(
    ("before", "after", "rest"),
    [
        (album(1, spoken=1), album(1, 2, 3, spoken=1), ("toy:2", "", "23")),
        (album(2, 3), album(1, 2, 3, spoken=1), ("toy:1", "look", "1")),
        (album(1, 3, spoken=3), album(1, 2, 3, spoken=3), ("toy:2", "", "2")),
    ],
)
async def test_of_an_album_that_a_crash_tore_the_rest_is_taken_once(
    before: Inbound, after: Inbound, rest: tuple[str, str, str]
) -> None:
    async with edge() as here:
        await here.desk.take(before)
        here.restart()
        await here.desk.take(after)
        said = here.composed[-1]
        assert (said.id, said.text, "".join(each.file_id for each in said.attachments)) == rest
        session = await here.session(before)
        assert session is not None
        for again in (after, album(3), album(2, 3), album(3, 2, 1, spoken=3)):
            await here.desk.take(again)
        assert len((await here.here.session(session)).queue) == 1  # besides the one that runs


# ---------------------------------------------------------------- choices


async def test_command_buttons_work_after_a_restart() -> None:
    async with edge() as here:
        first = await here.says("ann", "/model", "g")
        offered = here.outgoing[-1]
        assert offered.choices == ("default", "toy-1", "toy-2")
        here.restart()
        pressed = await here.says("ann", "toy-2", "g", answers=token_of(offered), choice=1)
        assert (here.outgoing[-1].text, here.outgoing[-1].sent) == (
            "The model is now toy-2.",
            (pressed.place.message,),
        )
        session = await here.session(first)
        assert session is not None
        assert (await here.here.session(session)).preferences.model == "toy-2"
        told = len(here.outgoing)
        await here.desk.take(pressed)  # comes again
        assert len(here.outgoing) == told


async def test_only_whom_it_was_offered_can_press_a_choice() -> None:
    async with edge() as here:
        first = await here.says("ann", "/reasoning", "g", thread="t")
        await here.says("bob", "high", "g", thread="t", answers=token_of(here.outgoing[-1]), choice=4)
        assert "for another person" in here.aside
        assert len(here.outgoing) == 1
        assert await here.session(first) is None  # it would have begun one


async def test_a_restart_is_asked_about_first_and_happens_once() -> None:
    async with edge(admins=("ann",)) as here:
        await here.says("ann", "/restart", "g")
        asked = here.outgoing[-1]
        assert (asked.text.startswith("Restart Hermes?"), asked.choices) == (True, ("yes", "no"))
        assert here.here.restarts == []
        await here.says("bob", "yes", "g", answers=token_of(asked), choice=0, message="m9")
        assert "for another person" in here.aside
        here.restart()
        for _ in range(2):  # before the buttons are gone
            await here.says("ann", "yes", "g", answers=token_of(asked), choice=0, message="m9")
        assert len(here.here.restarts) == 1
        assert (here.outgoing[-1].text.split(".")[0], here.outgoing[-1].sent) == ("Restarting", ("m9",))
        await here.says("ann", "/restart yes", "g")
        assert len(here.here.restarts) == 2
        await here.says("ann", "/restart", "g")
        await here.says("ann", "no", "g", answers=token_of(here.outgoing[-1]), choice=1, message="m10")
        assert (here.outgoing[-1].text, len(here.here.restarts)) == ("Nothing was restarted.", 2)


@pytest.mark.parametrize(("typed", "fresh"), [("Yes", True), ("no", False), ("what runs there?", None)])
async def test_new_is_answered_by_a_typed_word(typed: str, fresh: bool | None) -> None:
    async with edge() as here:
        first = await here.says("ann", "a")
        await here.here.answer()
        old = await here.session(first)
        assert old is not None
        here.here.processes.known = {"proc_a": replace(process_view("proc_a"), session=old)}
        await here.says("ann", "/new")
        assert here.outgoing[-1].choices == ("yes", "no")
        await here.says("ann", typed)
        assert (await here.session(first) != old) == bool(fresh)
        assert ("Nothing was changed." in here.told("ann")) == (fresh is False)
        assert any(typed in each.text for each in here.composed) == (fresh is None)
        before = len(here.composed)
        await here.says("ann", "yes")  # the question is closed
        assert len(here.composed) == before + 1


async def test_typed_yes_ignores_old_questions_and_those_of_others() -> None:
    async with edge() as here:
        first = await here.says("ann", "a", "g")
        await here.here.answer()
        old = await here.session(first)
        assert old is not None
        here.here.processes.known = {"proc_a": replace(process_view("proc_a"), session=old)}
        await here.says("ann", "/new", "g")
        await here.says("bob", "yes", "g")
        assert await here.session(first) == old
        here.here.now += VALID_S + 1
        await here.says("ann", "yes", "g")
        assert await here.session(first) == old


async def test_several_turns_are_taken_back_only_when_that_was_meant() -> None:
    async with edge() as here:
        for text in ("a", "b", "c", "d", "e"):
            first = await here.says("ann", text)
            await here.here.answer()
        session = await here.session(first)
        assert session is not None
        await here.says("ann", "/undo")
        await here.says("ann", "/undo 2")
        asked = here.outgoing[-1]
        assert asked.choices == ("yes, 2 turns", "no")
        await here.says("ann", "no", answers=token_of(asked), choice=1, message="m50")
        assert here.told("ann")[-1] == "Nothing was undone."
        assert await here.here.transcript(session) == ["a", "yes", "b", "yes", "c", "yes", "d", "yes"]
        for _ in range(2):
            await here.says("ann", "yes, 2 turns", answers=token_of(asked), choice=0, message="m51")
        assert await here.here.transcript(session) == ["a", "yes", "b", "yes"]
        await here.says("ann", "/undo 2 yes")
        assert await here.here.transcript(session) == []


# ---------------------------------------------------------------- bursts and edits


def test_only_a_message_of_about_the_greatest_length_is_cut_off() -> None:
    assert is_cut_off("a" * 4096, 4096)
    assert is_cut_off("\N{GRINNING FACE}" * 2048, 4096)  # two units each
    assert not is_cut_off("a" * 2048, 4096)
    assert not is_cut_off("a" * 10_000, 0)


def test_what_comes_too_late_continues_nothing() -> None:
    bursts = Bursts()
    bursts.expect("ann", TurnId("t"), 1.0)
    assert bursts.take_up("bob", 1.1) is None
    assert bursts.take_up("ann", 1.0 + WAIT_S + 0.1) is None
    bursts.expect("ann", TurnId("t"), 1.0)
    assert bursts.take_up("ann", 1.0 + WAIT_S) == "t"
    assert bursts.take_up("ann", 1.0) is None


async def test_a_split_text_is_one_turn_of_its_author() -> None:
    async with edge() as here:
        first = await here.says("ann", "a" * 100, "g", thread="t")
        await here.says("bob", "an aside", "g", thread="t")  # ends the wait
        await here.says("ann", "the end", "g", thread="t")
        session = await here.session(first)
        assert session is not None
        assert len((await here.here.session(session)).queue) == 2  # too late for one turn: hers runs already
    async with edge() as here:
        for text in ("a" * 100, "b" * 100, "the end"):
            first = await here.says("ann", text)
        await here.here.answer()
        session = await here.session(first)
        assert session is not None
        assert await here.here.transcript(session) == ["a" * 100, "b" * 100, "the end", "yes"]
        assert (await here.here.session(session)).turns == 1


async def test_a_part_that_comes_again_is_taken_once() -> None:
    async with edge() as here:
        first = await here.says("ann", "a" * 100)
        second = await here.says("ann", "the end")
        await here.desk.take(first)
        await here.desk.take(second)
        await here.here.answer()
        session = await here.session(first)
        assert session is not None
        assert await here.here.transcript(session) == ["a" * 100, "the end", "yes"]


async def test_full_queue_is_reported_once_and_blocks_no_other_chat() -> None:
    async with edge() as here, asyncio.timeout(10):
        for number in range(20):
            first = await here.says("ann", f"number {number}")
        session = await here.session(first)
        assert session is not None
        assert len((await here.here.session(session)).queue) == 4
        [told] = here.told("ann")
        assert told.startswith("Your message was not accepted: 4 messages already wait")
        here.here.now += 60
        await here.says("ann", "and now?")
        assert len(here.told("ann")) == 2


async def test_concurrent_group_migrations_are_all_stored() -> None:
    async with edge() as here:
        await asyncio.gather(*(here.desk.chat_moved(f"g{number}", f"s{number}") for number in range(9)))
        here.restart()
        for number in range(9):
            assert await here.desk.former_id(f"s{number}") == f"g{number}"


async def test_an_edit_replaces_what_waits_and_nothing_else() -> None:
    async with edge() as here:
        first = await here.says("ann", "first")
        waiting = await here.says("ann", "wrong")
        await here.says("ann", "right", message=waiting.place.message, edited=True)
        await here.says("ann", "too late", message=first.place.message, edited=True)
        await here.says("bob", "not mine", "ann", message=waiting.place.message, edited=True)
        await here.here.answer()
        await here.here.answer()
        session = await here.session(first)
        assert session is not None
        assert await here.here.transcript(session) == ["first", "yes", "right", "yes"]
        assert here.outgoing == []


async def test_deleted_waiting_message_is_dropped() -> None:
    async with edge() as here:
        first = await here.says("ann", "first")
        waiting = await here.says("ann", "never mind")
        await here.says("ann", "last")
        await here.says("ann", "", message=waiting.place.message, deleted=True)
        await here.says("ann", "", message=first.place.message, deleted=True)  # it is being answered
        await here.says("ann", "", message="unknown", deleted=True)
        await here.says("bob", "", "bob", message="unknown", deleted=True)  # who has no conversation
        await here.here.answer()
        await here.here.answer()
        session = await here.session(first)
        assert session is not None
        assert await here.here.transcript(session) == ["first", "yes", "last", "yes"]
