"""Built-in person model. Property: no belief rests on words of another person."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.domain.access.role import Role
from hermes.domain.change import ChangeAuthor
from hermes.domain.errors import BadInputError, StorageFullError
from hermes.domain.memory.scope import OWNER_SCOPE, MemoryScope, ScopeKind, parse_scope, scope_in
from hermes.domain.profile.belief import Profile
from hermes.domain.profile.conclusion import Conclusion, Spoken
from hermes.domain.session.state import Session
from hermes.ports.memory import ChangeOrigin
from hermes.services.profile.built_in_model import MAX_CHANGES, BuiltInPersonModel, subject_of
from hermes.services.profile.profile_block import profile_block
from tests.domain.memory.test_scope import group, private, terminal
from tests.support.journals import LoopJournal
from tests.support.memory_engine import MemoryEngine

ANN = parse_scope("telegram:1")


async def repeat_all(_profile: Profile, said: Sequence[Spoken], _origin: ChangeOrigin) -> list[Conclusion]:
    """Conclude every sentence that a person said."""
    return [Conclusion(topic="", text=each.text, quote=each.text, confidence=0.9) for each in said]


def model_on(journal: LoopJournal) -> BuiltInPersonModel:
    return BuiltInPersonModel(journal=journal, clock=lambda: 5.0, conclude=repeat_all)


def told(text: str, turn: str = "t1") -> list[Spoken]:
    return [Spoken(session="s", turn=turn, at=1.0, text=text, by_person=True)]


def origin(operation: str) -> ChangeOrigin:
    return ChangeOrigin(author=ChangeAuthor.REVIEW, operation=operation, by="cli", session="s", turn="t1")


@pytest.fixture
def journal() -> LoopJournal:
    return LoopJournal(MemoryEngine())


async def test_what_was_learned_is_a_change_with_its_turn_and_is_there_after_a_restart(journal: LoopJournal) -> None:
    assert await model_on(journal).learn(OWNER_SCOPE, told("I like tea"), origin("a")) == 1
    assert await model_on(journal).learn(OWNER_SCOPE, told("I like tea"), origin("a")) == 0
    [belief] = await model_on(journal).beliefs(OWNER_SCOPE)
    assert belief.text == "I like tea"
    change = await journal.fetch(lambda reader: reader.last_change(subject_of(OWNER_SCOPE)))
    assert change is not None
    assert (change.number, change.author, change.turn) == (1, ChangeAuthor.REVIEW, "t1")
    assert await model_on(journal).people() == ("owner",)


async def test_what_is_forgotten_leaves_no_copy(journal: LoopJournal) -> None:
    model = model_on(journal)
    await model.learn(ANN, told("I have a secret hobby"), origin("a"))
    await model.learn(ANN, told("I like tea", "t2"), origin("b"))
    gone = await model.forget(ANN, "1", origin("c"))
    assert [each.text for each in gone] == ["I have a secret hobby"]
    assert [each.text for each in await model.beliefs(ANN)] == ["I like tea"]
    changes = await journal.fetch(lambda reader: reader.changes(subject_of(ANN)))
    assert b"secret" not in b"".join(each.payload for each in changes)
    with pytest.raises(BadInputError) as refused:
        await model.forget(ANN, "1", origin("d"))
    assert refused.value.code == "unknown_belief"
    await model.forget(ANN, None, origin("e"))
    assert await model.beliefs(ANN) == ()
    assert await model.people() == ()


async def test_what_is_concluded_while_something_is_forgotten_does_not_count(journal: LoopJournal) -> None:
    going, forgotten = asyncio.Event(), asyncio.Event()

    async def slow(profile: Profile, said: Sequence[Spoken], given: ChangeOrigin) -> list[Conclusion]:
        going.set()
        await forgotten.wait()
        return await repeat_all(profile, said, given)

    model = BuiltInPersonModel(journal=journal, clock=lambda: 5.0, conclude=slow)
    learning = asyncio.create_task(model.learn(ANN, told("I have a secret hobby"), origin("a")))
    await going.wait()
    await model.forget(ANN, None, origin("b"))
    forgotten.set()
    assert await learning == 0
    assert await model.beliefs(ANN) == ()


async def test_a_log_stays_short(journal: LoopJournal) -> None:
    model = model_on(journal)
    for number in range(MAX_CHANGES + 3):
        await model.learn(ANN, told(f"I say {number}", f"t{number}"), origin(f"o{number}"))
    changes = await journal.fetch(lambda reader: reader.changes(subject_of(ANN)))
    assert len(changes) == 3
    assert len(await model.beliefs(ANN)) == 60


async def test_what_cannot_be_stored_is_learned_again_later(journal: LoopJournal) -> None:
    journal.refuse_with = StorageFullError("full")
    with pytest.raises(StorageFullError):
        await model_on(journal).learn(ANN, told("I like tea"), origin("a"))
    journal.refuse_with = None
    assert await model_on(journal).learn(ANN, told("I like tea"), origin("a")) == 1


def sessions() -> list[Session]:
    return [
        terminal("cli"),
        terminal("api"),
        private("1"),
        private("2"),
        private("1", "slack"),
        group("1"),
        group("1", shared=False),
        group("2", shared=False),
        replace(private("1"), platform="api", key=terminal("api").key, place=None, company=None),
    ]


TURNS = st.tuples(
    st.sampled_from(sessions()),
    st.sampled_from(list(Role)),
    st.sampled_from(["", "cli", "api", "api:1", "telegram:1", "telegram:2", "slack:1"]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(TURNS, min_size=1, max_size=8), TURNS)
def test_nothing_of_one_person_reaches_the_prompt_of_another(
    history: list[tuple[Session, Role, str]], now: tuple[Session, Role, str]
) -> None:
    def scope_of(turn: tuple[Session, Role, str]) -> MemoryScope | None:
        scope = scope_in(*turn)
        return None if scope is None or scope.kind is ScopeKind.CHAT else scope

    async def learn_and_read() -> str:
        model = model_on(LoopJournal(MemoryEngine()))
        for number, turn in enumerate(history):
            if (scope := scope_of(turn)) is not None:
                await model.learn(scope, told(f"word{number}word", f"t{number}"), origin(str(number)))
        mine = scope_of(now)
        return "" if mine is None else profile_block(await model.beliefs(mine), 10_000)

    prompt = asyncio.run(learn_and_read())
    for number, (session, role, by) in enumerate(history):
        if f"word{number}word" in prompt:
            assert _writer(session, role, by) == _writer(*now)


def _writer(session: Session, role: Role, by: str) -> str:
    """Return who writes a turn, told apart from `scope_in`: the account, or the owner."""
    if role is Role.OWNER and session.platform in ("cli", "api") and by in ("", "cli", "api", "api:1"):
        return "owner"
    return by if ":" in by else f"{session.platform}:{session.owner}"
