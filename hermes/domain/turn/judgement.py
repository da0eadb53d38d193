"""Rules about calls that a model may approve instead of a person. Pure.

A model never approves what no standing grant could cover (leaving the sandbox, commands that are only known when they
run), anything for a role that may not approve itself, or a call of a child session.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from hermes.domain.access.role import Role
from hermes.domain.text.injection import suspicion
from hermes.domain.turn.tool_call import Call, CallJudgement, Gate, JudgeVerdict, Verdict

MAX_COMMAND = 2_000  # characters; a longer command is for a person
MIN_CONFIDENCE = 0.9
_TOOL = "terminal"
_MAX_REASON = 200  # characters
# Words that a text uses to influence a judge. A harmless command that has one is for the person, which costs little.
_TO_A_JUDGE = re.compile(
    r"approv|verdict|confidence|judg|instruct|disregard|untrusted|prompt|permi(t|ss)", re.IGNORECASE
)
_FIELDS = {"id", "verdict", "confidence", "reason"}


def is_judgeable(call: Call, kinds: Collection[str]) -> bool:
    """Return whether a model may be asked about this call. `kinds`: what the configuration leaves to it."""
    if call.name != _TOOL or call.problem or not 0 < len(call.whole) <= MAX_COMMAND:
        return False
    return _is_grantable(call.gate) and set(call.gate.rules) <= set(kinds)


def addresses_judge(command: str) -> bool:
    """Return whether a command may contain text for the model that judges it."""
    return bool(suspicion(command) or _TO_A_JUDGE.search(command))


def is_approved(call: Call, role: Role, *, child: bool) -> bool:
    """Return whether a model's approval lets this call run."""
    judged = call.judgement is not None and call.judgement.verdict is JudgeVerdict.APPROVE
    return judged and role.approves and not child and _is_grantable(call.gate)


def _is_grantable(gate: Gate) -> bool:
    return gate.verdict is Verdict.ASK and bool(gate.rules) and not gate.once


def read_verdict(answer: str, *, id: str, model: str) -> CallJudgement:  # noqa: A002 - the field of the answer
    """Read a model's answer. Whatever is not exactly the requested object asks the person.

    `id` is random and new for each question: text in a command cannot contain an answer with it.
    """
    try:
        found = json.loads(answer.strip(), object_pairs_hook=_unique, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return CallJudgement(verdict=JudgeVerdict.UNREADABLE, model=model)
    if not _is_well_formed(found, id):
        return CallJudgement(verdict=JudgeVerdict.UNREADABLE, model=model)
    confident = found["verdict"] == "approve" and found["confidence"] >= MIN_CONFIDENCE
    return CallJudgement(
        verdict=JudgeVerdict.APPROVE if confident else JudgeVerdict.ASK,
        model=model,
        confidence=float(found["confidence"]),
        reason=" ".join(found["reason"].split())[:_MAX_REASON],
    )


def _is_well_formed(found: Any, id: str) -> bool:  # noqa: A002
    if not isinstance(found, dict) or found.keys() != _FIELDS or found["id"] != id:
        return False
    confidence = found["confidence"]
    if isinstance(confidence, bool) or not isinstance(confidence, int | float) or not 0 <= confidence <= 1:
        return False
    return found["verdict"] in ("approve", "ask") and isinstance(found["reason"], str)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a field is given twice")
    return found


def _refuse(constant: str) -> None:
    raise ValueError(constant)
