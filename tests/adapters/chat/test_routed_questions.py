"""What a user's or guest's turn needs approval for is asked of the admins, where they are, and of nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.domain.access.question import button_token
from hermes.domain.access.role import Role
from hermes.domain.outbox_message import OutboxKind, OutboxMessage
from hermes.domain.session.state import Phase, Session
from tests.actors.talk import needs_leave
from tests.adapters.chat.edge import Edge, edge
from tests.support.waiting import until

BOSS = ("boss",)
GROUP: dict[str, Any] = {"open_places": ("g",), "admins": BOSS}


async def asks(here: Edge, user: str, chat: str = "g") -> tuple[Session, str]:
    """That person's turn wants to run something. Returns its session, and the token of the buttons."""
    first = await here.says(user, "do it", chat, user_name=user.title(), chat_name="Te`am")
    await here.here.answer("", needs_leave("c1"))
    session = await here.session(first)
    assert session is not None
    head = await here.here.session(session)
    assert head.turn is not None
    assert head.phase is Phase.WAITING
    return head, button_token(head.turn.id, "c1")


def questions(here: Edge) -> list[OutboxMessage]:
    return [outgoing for outgoing in here.owed_by_sessions() if outgoing.kind is OutboxKind.QUESTION]


async def test_the_question_goes_to_the_admins_private_chat_and_the_asker_is_told() -> None:
    async with edge(**GROUP) as here:
        await here.says("boss", "/status")  # so that their private chat is known
        head, _ = await asks(here, "eve")
        [question] = questions(here)
        assert (question.place.chat, question.choices) == ("boss", ("once", "deny"))
        assert question.text.startswith(f"Eve (toy:eve, guest) asks in Te am, session {head.id}:\n")
        assert "`write c1`" in question.text
        [waits] = [outgoing for outgoing in here.owed_by_sessions() if outgoing.place.chat == "g" and outgoing.text]
        assert waits.text.endswith("Waiting for the owner's approval.")
        assert waits.choices == ()
        assert "Eve (toy:eve, guest) waits for the owner's approval" in head.reason


async def test_a_users_question_may_be_granted_for_longer() -> None:
    async with edge(admins=BOSS) as here:
        await here.says("boss", "/status")
        await asks(here, "ann", "")
        [question] = questions(here)
        assert question.choices == ("once", "session", "always", "deny")


async def test_an_admins_own_question_stays_in_their_chat() -> None:
    async with edge(admins=BOSS) as here:
        head, _ = await asks(here, "boss", "")
        [question] = questions(here)
        assert (question.place.chat, question.id) == ("boss", f"question:{head.turn and head.turn.id}:c1")


async def test_without_a_private_chat_the_home_channel_is_asked() -> None:
    async with edge(**GROUP) as here:
        await here.says("boss", "/sethome", "h")
        await asks(here, "eve")
        assert [outgoing.place.chat for outgoing in questions(here)] == ["h"]


async def test_without_an_approver_the_call_waits_with_a_notice() -> None:
    async with edge(**GROUP) as here:
        head, _ = await asks(here, "eve")
        assert questions(here) == []
        assert [each.id for each in await here.here.desk.awaiting_approval()] == [head.id]
        assert f"hermes approve {head.id}" in (await here.here.desk.view(head.id)).why


async def test_former_admin_is_not_asked() -> None:
    async with edge(**GROUP) as here:
        await here.here.desk.remember("chat.private:toy:former", b'{"chat": "former"}')
        await here.says("boss", "/status")
        await asks(here, "eve")
        assert [outgoing.place.chat for outgoing in questions(here)] == ["boss"]


async def test_an_admins_press_lets_it_run_and_takes_all_buttons_away() -> None:
    async with edge(**GROUP) as here:
        await here.says("boss", "/status")
        head, token = await asks(here, "eve")
        here.restart()
        await here.says("boss", "once", answers=token, choice=0, user_name="Boss")
        assert here.aside == ""
        await until(lambda: len(here.here.agent.acts) == 1)
        assert here.here.agent.acts[0].job.role is Role.GUEST
        ends = {outgoing.place.chat: outgoing for outgoing in here.owed_by_sessions() if outgoing.amends}
        assert head.turn is not None
        assert ends["boss"].amends == f"question:{head.turn.id}:c1:1"
        assert ends["boss"].text.endswith("→ once, by Boss (toy:boss, admin)")
        assert ends["g"].text.endswith("→ once, by an admin")
        assert ends["g"].choices == ends["boss"].choices == ()
        await here.says("boss", "once", answers=token, choice=0)
        assert here.aside == "This question is no longer open."


async def test_a_denial_by_an_admin_ends_the_call() -> None:
    async with edge(**GROUP) as here:
        await here.says("boss", "/status")
        head, token = await asks(here, "eve")
        await here.says("boss", "deny", answers=token, choice=1)
        assert here.here.agent.acts == []
        assert (await here.here.session(head.id)).phase is Phase.RUNNING


@pytest.mark.parametrize("who", ["eve", "ann", "bob"])
async def test_other_people_cannot_press_the_button(who: str) -> None:
    async with edge(**GROUP) as here:
        await here.says("boss", "/status")
        head, token = await asks(here, "eve")
        for choice, word in enumerate(("once", "deny")):
            await here.says(who, word, "g", answers=token, choice=choice)
            assert here.aside == "Only the owner and the admins of this Hermes can answer this."
        assert here.here.agent.acts == []
        assert (await here.here.session(head.id)).phase is Phase.WAITING


@pytest.mark.parametrize("said", ["/approve", "/approve session", "/approve always", "/yolo on", "yes", "always"])
async def test_the_asker_cannot_approve_in_words(said: str) -> None:
    async with edge(**GROUP) as here:
        await here.says("boss", "/status")
        head, _ = await asks(here, "eve")
        await here.says("eve", said, "g")
        assert "the owner and the admins" in here.told("g")[-1]
        assert here.here.agent.acts == []
        after = await here.here.session(head.id)
        assert (after.phase, after.grants, after.preferences.yolo) == (Phase.WAITING, (), False)


async def test_the_asker_can_call_it_off() -> None:
    async with edge(**GROUP) as here:
        await here.says("boss", "/status")
        head, _ = await asks(here, "eve")
        await here.says("eve", "/deny", "g")
        assert (await here.here.session(head.id)).phase is Phase.RUNNING
        assert any(outgoing.place.chat == "boss" and outgoing.amends for outgoing in here.owed_by_sessions())


async def test_the_owner_approves_from_the_terminal() -> None:
    async with edge(**GROUP) as here:
        head, _ = await asks(here, "eve")
        assert (await here.here.command("/approve", head.id)).ok
        await until(lambda: len(here.here.agent.acts) == 1)


async def test_yolo_of_an_admin_does_not_count_for_others_in_a_shared_conversation() -> None:
    async with edge(allowed=("ann",), admins=BOSS, open_places=("g",), per_user=False) as here:
        await here.says("boss", "/yolo on", "g")
        await here.says("boss", "do it", "g")
        await here.here.answer("", needs_leave("c1"))
        await here.here.finish_tool()
        await here.here.answer("done")
        for user in ("ann", "eve"):
            first = await here.says(user, "do it", "g")
            await here.here.answer("", needs_leave(f"c-{user}"))
            session = await here.session(first, group_sessions_per_user=False)
            assert session is not None
            assert (await here.here.session(session)).phase is Phase.WAITING
            await here.says(user, "/stop", "g")
        assert here.here.agent.acts == []


async def test_what_was_granted_for_good_does_not_count_for_guests() -> None:
    async with edge(**GROUP) as here:
        await here.here.desk.remember("grant:rm", b"1")
        await asks(here, "eve")
        await here.says("ann", "do it", "g")
        await here.here.answer("", needs_leave("c2"))
        await until(lambda: len(here.here.agent.acts) == 1)
        assert here.here.agent.acts[0].job.role is Role.USER


async def test_why_and_trace_name_the_turn_owner_and_approver() -> None:
    async with edge(**GROUP) as here:
        await here.says("boss", "/status")
        head, token = await asks(here, "eve")
        await here.says("boss", "once", answers=token, choice=0, user_name="Boss")
        await until(lambda: len(here.here.agent.acts) == 1)
        desk = here.here.desk
        why = (await desk.view(head.id)).why
        assert "The turn is that of Eve (toy:eve, guest)." in why
        assert "runs write c1 (approved by Boss (toy:boss, admin))" in why
        await here.here.finish_tool()
        [line] = [each for each in await desk.trace(head.id, 9) if each.turn == (head.turn and head.turn.id)]
        details = {step.what: step.detail for step in line.steps}
        assert details["accepted"] == "from Eve (toy:eve, guest)"
        assert details["asked"].endswith("(of the owner and the admins): answered, by Boss (toy:boss, admin)")
        messages = await desk.messages(head.id, None, 9)
        assert [each.by for each in messages] == ["Eve (toy:eve, guest)", "", ""]
        assert [each.answered for each in messages] == ["", "", "once, by Boss (toy:boss, admin)"]
