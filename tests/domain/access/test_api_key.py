"""Named API keys as values: names, states, budgets, and what is stored of them."""

from __future__ import annotations

import pytest

from hermes.domain.access.api_key import ApiKey, KeyState, add, decode, encode, find, hash_of, revoke, surface_of
from hermes.domain.access.role import Role
from hermes.domain.access.visibility import may_be_told_in
from hermes.domain.errors import BadInputError
from hermes.domain.ids import SessionKey
from hermes.domain.session.state import Session
from hermes.domain.turn.usage import Usage
from tests.support.fakes import a_session

CI = ApiKey(name="ci", role=Role.USER, hash=hash_of("secret"), created_at=0.0)


def made(**fields: object) -> ApiKey:
    return ApiKey(**{"name": "other", "role": Role.GUEST, "hash": hash_of("x"), "created_at": 0.0, **fields})  # type: ignore[arg-type]


def test_key_is_found_by_its_text_and_its_text_is_not_stored() -> None:
    keys = add(add((), CI), made())
    assert find(keys, "secret") == CI
    assert find(keys, "Secret") is None
    assert b"secret" not in encode(keys)
    assert decode(encode(keys)) == keys
    assert decode(None) == ()


@pytest.mark.parametrize("name", ["", "-a", "A", "a b", "a:b", "a/b", "x" * 33, "ä"])
def test_name_that_cannot_be_used(name: str) -> None:
    with pytest.raises(BadInputError):
        add((), made(name=name))


def test_name_of_a_revoked_key_is_not_given_out_again() -> None:
    keys = revoke((CI,), "ci", 5.0)
    assert keys[0].state(6.0) is KeyState.REVOKED
    with pytest.raises(BadInputError) as error:
        add(keys, CI)
    assert error.value.code == "key_exists"
    with pytest.raises(BadInputError):
        revoke(keys, "ci", 7.0)


@pytest.mark.parametrize("role", [Role.OWNER, Role.ADMIN])
def test_named_key_cannot_have_the_owners_rights(role: Role) -> None:
    with pytest.raises(BadInputError):
        add((), made(role=role))


def test_expiry() -> None:
    key = made(expires_at=10.0)
    assert (key.state(9.9), key.state(10.0)) == (KeyState.ACTIVE, KeyState.EXPIRED)


def test_budget() -> None:
    used = Usage(prompt_tokens=60, completion_tokens=40, cost_usd=0.5)
    assert not made().has_spent(used)
    assert made(day_tokens=100).has_spent(used)
    assert not made(day_tokens=101).has_spent(used)
    assert made(day_usd=0.5).has_spent(used)
    assert not made(day_usd=0.51).has_spent(used)


def test_search_of_a_named_key_finds_its_own_sessions_only() -> None:
    def session(name: str, platform: str, owner: str) -> Session:
        return a_session(name, platform=platform, owner=owner, key=SessionKey(f"agent:main:{platform}:dm:{name}"))

    own, second = session("a", "key-ci", "ci"), session("b", "key-ci", "ci")
    owners, others = session("c", "api", ""), session("d", "key-other", "other")
    assert may_be_told_in(own, second)
    assert not may_be_told_in(own, owners)
    assert not may_be_told_in(own, others)
    assert may_be_told_in(owners, own)
    assert CI.owns(own)
    assert not CI.owns(session("e", "key-ci-2", "ci-2"))


def test_conversations_of_named_keys_are_configured_as_the_api() -> None:
    assert (surface_of("key-ci"), surface_of("telegram")) == ("api", "telegram")
