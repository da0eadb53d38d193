"""Who may allow what, as a table."""

from __future__ import annotations

import pytest

from hermes.domain.access.permission import CLARIFY, grants_for, is_routed, is_unasked, may_answer, rules_of
from hermes.domain.access.role import Role
from hermes.domain.turn.tool_call import Call, Gate, Verdict

RULES = [("outside-sandbox",), ("recursive-delete", "outside-sandbox"), ("ssh-key",), ()]
APPROVALS = ("once", "session", "always")


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize(("role", "approves"), [
    (Role.OWNER, True), (Role.ADMIN, True), (Role.USER, False), (Role.GUEST, False),
])  # fmt: skip
def test_only_the_owner_and_admins_allow_anything(role: Role, approves: bool, rules: tuple[str, ...]) -> None:
    assert [may_answer(role, rules, choice) for choice in APPROVALS] == [approves] * 3
    assert may_answer(role, rules, "deny")
    assert is_routed(role, rules) is not approves


@pytest.mark.parametrize("role", Role)
def test_everybody_answers_what_the_model_asks_them(role: Role) -> None:
    assert may_answer(role, (CLARIFY,), "the red one")
    assert may_answer(role, (CLARIFY,), "always")
    assert not is_routed(role, (CLARIFY,))


def test_a_rule_beside_clarify_is_no_mere_question() -> None:
    assert not may_answer(Role.USER, (CLARIFY, "outside-sandbox"), "once")


def test_rules_of_a_call() -> None:
    gate = Gate(verdict=Verdict.ASK, rules=("rm",))
    assert rules_of(Call(id="c", name="terminal", gate=gate)) == ("rm",)
    assert rules_of(Call(id="c", name="clarify", question="which?")) == (CLARIFY,)


@pytest.mark.parametrize(("role", "counts"), [
    (Role.OWNER, {"a", "b"}), (Role.ADMIN, {"a", "b"}), (Role.USER, {"a", "b"}), (Role.GUEST, set()),
])  # fmt: skip
def test_standing_grants_do_not_count_for_guests(role: Role, counts: set[str]) -> None:
    assert grants_for(role, ["a"], {"b"}) == counts


@pytest.mark.parametrize(("role", "unasked"), [
    (Role.OWNER, True), (Role.ADMIN, True), (Role.USER, False), (Role.GUEST, False),
])  # fmt: skip
def test_yolo_counts_only_for_those_who_may_approve(role: Role, unasked: bool) -> None:
    assert is_unasked(role, yolo=True) is unasked
    assert not is_unasked(role, yolo=False)
