"""Whose memory a turn uses. Property: no turn uses the notes of a person who did not write it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.domain.access.role import Role
from hermes.domain.child.child import Assignment, Purpose
from hermes.domain.errors import BadInputError
from hermes.domain.ids import SessionKey
from hermes.domain.memory.scope import (
    OWNER_SCOPE,
    MemoryScope,
    MemoryTarget,
    ScopeKind,
    parse_scope,
    resolved,
    scope_in,
)
from hermes.domain.session.state import Session
from hermes.domain.source import ChatContext, Handover, Place
from tests.storage.samples import head

ANN, BEN = "telegram:1", "telegram:2"


def person(by: str) -> MemoryScope:
    return MemoryScope(kind=ScopeKind.PERSON, name=by)


def private(user: str, platform: str = "telegram") -> Session:
    return replace(
        head("s", 1),
        platform=platform,
        owner=user,
        key=SessionKey(f"agent:main:{platform}:dm:{user}"),
        place=Place(platform=platform, chat=user),
        company=ChatContext(kind="dm"),
    )


def group(user: str = "", *, shared: bool = True) -> Session:
    key = "agent:main:telegram:group:-5" + (f":{user}" if not shared else "")
    return replace(
        private(user),
        key=SessionKey(key),
        place=Place(platform="telegram", chat="-5"),
        company=ChatContext(kind="group", shared=shared),
    )


def terminal(platform: str = "cli") -> Session:
    return replace(head("s", 1), platform=platform)


@pytest.mark.parametrize("platform", ["cli", "api", "terminal", "admin"])
def test_owner_surfaces_use_the_owners_memory(platform: str) -> None:
    assert scope_in(terminal(platform), Role.OWNER, f"{platform}:someone") == OWNER_SCOPE
    assert scope_in(terminal(platform), Role.OWNER, platform) == OWNER_SCOPE


def test_private_chat_uses_the_memory_of_its_person() -> None:
    assert scope_in(private("1"), Role.USER, ANN) == person(ANN)
    assert scope_in(private("1"), Role.ADMIN, "telegram") == person(ANN)  # a report, such as the end of a process


@pytest.mark.parametrize("by", [BEN, "cli:root", "slack:1"])
def test_other_people_in_a_private_conversation_use_no_memory(by: str) -> None:
    for role in Role:
        assert scope_in(private("1"), role, by) is None


def test_shared_chat_uses_the_notes_of_the_chat_and_none_about_a_person() -> None:
    chat = MemoryScope(kind=ScopeKind.CHAT, name="telegram:-5")
    assert scope_in(group("1"), Role.USER, ANN) == scope_in(group("1"), Role.USER, BEN) == chat
    assert chat.targets == (MemoryTarget.MEMORY,)


def test_own_session_in_a_group_uses_the_memory_of_its_person() -> None:
    assert scope_in(group("1", shared=False), Role.USER, ANN) == person(ANN)


def test_thread_in_a_group_is_shared() -> None:
    session = replace(group("1", shared=False), place=Place(platform="telegram", chat="-5", thread="t"))
    found = scope_in(session, Role.USER, ANN)
    assert found is not None
    assert found.kind is ScopeKind.CHAT


def test_named_api_key_has_its_own_memory() -> None:
    session = replace(terminal("key-bob"), owner="bob")
    assert scope_in(session, Role.USER, "key-bob:bob") == person("key-bob:bob")


def test_accounts_of_the_owner_use_the_owners_memory() -> None:
    assert resolved(scope_in(private("1"), Role.ADMIN, ANN), (ANN,)) == OWNER_SCOPE
    assert resolved(scope_in(private("2"), Role.ADMIN, BEN), (ANN,)) == person(BEN)
    assert resolved(scope_in(group("1"), Role.ADMIN, ANN), (ANN,)) != OWNER_SCOPE


def test_conversation_that_moved_keeps_only_the_owners_memory() -> None:
    to = Handover(
        key=SessionKey("agent:main:telegram:dm:1"), place=Place(platform="telegram", chat="1"), reason="asked"
    )
    moved = replace(terminal(), handover=to, place=to.place)
    assert resolved(scope_in(moved, Role.ADMIN, ANN), (ANN,)) == OWNER_SCOPE
    assert resolved(scope_in(moved, Role.ADMIN, ANN), ()) is None
    into_group = replace(moved, handover=replace(to, key=SessionKey("agent:main:telegram:group:-5")))
    found = scope_in(into_group, Role.OWNER, "cli")
    assert found is not None
    assert found.kind is ScopeKind.CHAT


names = st.sampled_from(["1", "2", "-5", "a/b", "a-b", "é", "../../x", "x" * 90])
platforms = st.sampled_from(["telegram", "slack", "key-bob", "cli", "api"])
sessions = st.one_of(
    st.builds(private, names, platforms),
    st.builds(lambda user, shared: group(user, shared=shared), names, st.booleans()),
    st.builds(terminal, platforms),
)


@given(sessions, st.sampled_from(Role), platforms, names, st.booleans())
def test_no_turn_uses_the_memory_of_another_person(
    session: Session, role: Role, platform: str, user: str, moves: bool
) -> None:
    if moves:
        to = Handover(
            key=SessionKey(f"agent:main:{platform}:dm:{user}"), place=Place(platform=platform, chat=user), reason=""
        )
        session = replace(session, handover=to, place=to.place)
    by = f"{platform}:{user}"
    found = resolved(scope_in(session, role, by), ("telegram:owner",))
    if found is None:
        return
    match found.kind:
        case ScopeKind.OWNER:
            assert role is Role.OWNER
            assert platform in ("cli", "api")
        case ScopeKind.PERSON:
            assert found.name == by
            assert session.owner == user
        case ScopeKind.CHAT:
            assert session.place is not None


@given(
    st.lists(st.tuples(st.sampled_from(["person", "chat"]), platforms, names), min_size=2, max_size=6, unique=True)
)
def test_each_scope_has_a_folder_of_its_own_below_memories(given: list[tuple[str, str, str]]) -> None:
    scopes = [parse_scope(f"{kind}:{platform}:{name}") for kind, platform, name in given]
    folders = [scope.folder for scope in scopes]
    assert len(set(folders)) == len(folders)
    assert len({scope.subject(MemoryTarget.MEMORY) for scope in scopes} | {"memory/owner/memory"}) == len(folders) + 1
    for scope, folder in zip(scopes, folders, strict=True):
        assert parse_scope(scope.text) == scope
        assert folder.count("/") == 1
        assert all(part not in ("", ".", "..") for part in folder.split("/"))
        assert len(scope.subject(MemoryTarget.MEMORY).encode()) <= 200


def test_person_is_written_as_platform_and_user() -> None:
    assert parse_scope("telegram:1") == parse_scope("person:telegram:1") == person(ANN)
    assert parse_scope("") == parse_scope("owner") == OWNER_SCOPE
    for wrong in ("nobody", "chat:x", ":1", "person:1"):
        with pytest.raises(BadInputError):
            parse_scope(wrong)


@given(
    session=st.one_of(
        st.builds(private, st.sampled_from(["1", "2"])),
        st.builds(group, st.sampled_from(["1", "2"]), shared=st.booleans()),
        st.builds(terminal, st.sampled_from(["cli", "api"])),
    ),
    role=st.sampled_from(list(Role)),
    by=st.sampled_from([ANN, BEN, "cli", "api", "telegram", ""]),
    accounts=st.sampled_from([(), (ANN,)]),
)
def test_review_uses_the_memory_of_the_turn_that_caused_it(
    session: Session, role: Role, by: str, accounts: tuple[str, ...]
) -> None:
    scope = resolved(scope_in(session, role, by), accounts)
    if scope is None:
        return  # such a review has no memory tool
    assignment = Assignment(purpose=Purpose.REVIEW, key="k", memory=scope.text)
    child = replace(head("child", 1), platform=by.partition(":")[0] or session.platform, assignment=assignment)
    assert resolved(scope_in(child, role, by), accounts) == scope
