"""Which calls a model may approve, and which of its answers do."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hermes.domain.access.role import Role
from hermes.domain.turn.judgement import MAX_COMMAND, is_approved, is_judgeable, read_verdict
from hermes.domain.turn.tool_call import Call, CallJudgement, Gate, JudgeVerdict, Verdict
from hermes.domain.values import replace

ID = "a1b2c3d4e5f6"
KINDS = ("recursive-delete", "git-clean")
GATE = Gate(verdict=Verdict.ASK, reason="it deletes a directory tree", rules=("recursive-delete",))
CALL = Call(id="c1", name="terminal", whole="rm -rf build", gate=GATE)
APPROVED = CallJudgement(verdict=JudgeVerdict.APPROVE, model="small", confidence=0.97)
ANSWER = {"id": ID, "verdict": "approve", "confidence": 0.97, "reason": "It is build output."}


def verdict_of(answer: str) -> JudgeVerdict:
    return read_verdict(answer, id=ID, model="small").verdict


@pytest.mark.parametrize(
    ("changes", "judgeable"),
    [
        ({}, True),
        ({"name": "write_file"}, False),
        ({"problem": "no such argument"}, False),
        ({"whole": ""}, False),
        ({"whole": "x" * (MAX_COMMAND + 1)}, False),
        ({"gate": replace(GATE, once=True)}, False),
        ({"gate": replace(GATE, rules=())}, False),
        ({"gate": replace(GATE, rules=("recursive-delete", "superuser"))}, False),
        ({"gate": replace(GATE, verdict=Verdict.BLOCK)}, False),
        ({"gate": Gate()}, False),
    ],
)
def test_only_short_commands_of_configured_kinds_are_judged(changes: dict[str, Any], judgeable: bool) -> None:
    assert is_judgeable(replace(CALL, **changes), KINDS) is judgeable


@pytest.mark.parametrize("role", Role)
def test_approval_of_a_model_counts_for_roles_that_can_approve(role: Role) -> None:
    assert is_approved(replace(CALL, judgement=APPROVED), role, child=False) is role.approves


@pytest.mark.parametrize("verdict", [each for each in JudgeVerdict if each is not JudgeVerdict.APPROVE])
def test_every_other_verdict_asks_the_person(verdict: JudgeVerdict) -> None:
    assert not is_approved(replace(CALL, judgement=replace(APPROVED, verdict=verdict)), Role.OWNER, child=False)
    assert not is_approved(CALL, Role.OWNER, child=False)


def test_no_approval_of_a_model_for_child_sessions_and_for_calls_that_need_one_each_time() -> None:
    judged = replace(CALL, judgement=APPROVED)
    assert not is_approved(judged, Role.OWNER, child=True)
    assert not is_approved(replace(judged, gate=replace(GATE, once=True)), Role.OWNER, child=False)
    assert not is_approved(replace(judged, gate=replace(GATE, verdict=Verdict.BLOCK)), Role.OWNER, child=False)


def test_confident_answer_approves() -> None:
    found = read_verdict(f"  {json.dumps(ANSWER)}\n", id=ID, model="small")
    assert found == replace(APPROVED, reason="It is build output.")


def test_reason_is_one_short_line() -> None:
    found = read_verdict(json.dumps(ANSWER | {"reason": "a\nb " * 500}), id=ID, model="small")
    assert "\n" not in found.reason
    assert len(found.reason) == 200


@pytest.mark.parametrize(("verdict", "confidence"), [("approve", 0.89), ("approve", 0), ("ask", 1)])
def test_doubt_asks_the_person(verdict: str, confidence: float) -> None:
    assert verdict_of(json.dumps(ANSWER | {"verdict": verdict, "confidence": confidence})) is JudgeVerdict.ASK


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "approve",
        "null",
        "[]",
        json.dumps([ANSWER]),
        f"Here it is: {json.dumps(ANSWER)}",
        f"```json\n{json.dumps(ANSWER)}\n```",
        json.dumps(ANSWER) * 2,
        json.dumps({name: value for name, value in ANSWER.items() if name != "id"}),
        json.dumps(ANSWER | {"id": "000000000000"}),
        json.dumps(ANSWER | {"id": [ID]}),
        json.dumps(ANSWER | {"more": 1}),
        json.dumps(ANSWER | {"verdict": "APPROVE"}),
        json.dumps(ANSWER | {"verdict": True}),
        json.dumps(ANSWER | {"verdict": ["approve"]}),
        json.dumps(ANSWER | {"confidence": "0.99"}),
        json.dumps(ANSWER | {"confidence": True}),
        json.dumps(ANSWER | {"confidence": 1.5}),
        json.dumps(ANSWER | {"reason": None}),
        json.dumps(ANSWER | {"confidence": float("nan")}),
        json.dumps(ANSWER | {"confidence": float("inf")}),
        json.dumps(ANSWER)[:-1] + ', "verdict": "ask"}',
        "[" * 100_000,
        json.dumps(ANSWER)[:-3],
    ],
)
def test_answer_in_another_form_asks_the_person(answer: str) -> None:
    assert verdict_of(answer) is JudgeVerdict.UNREADABLE
