"""docs/errors.md lists every code that the API and the admin socket can answer."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.adapters.http import problem
from hermes.adapters.http.peer_limit import TOO_MANY
from hermes.config.prompt_trust import CHANGED
from hermes.domain.access.api_key import KeyState
from hermes.domain.access.permission import NEEDS_APPROVER
from hermes.domain.errors import BadInputError
from hermes.domain.turn.turn_failure import Failure, FailureKind

ROOT = Path(__file__).parents[2]
LISTED = set(
    re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.+?) \|", (ROOT / "docs/errors.md").read_text(), re.MULTILINE)))
)
CLIENT_SIDE = ("hermes/cli/", "hermes/client/")  # they read codes
MADE_BY_NAME = (TOO_MANY, CHANGED, NEEDS_APPROVER, "not_found", "method_not_allowed")
MADE_FROM_PARTS = (
    *(f"{state}_api_key" for state in KeyState if state is not KeyState.ACTIVE),
    *(f"{what}_not_found" for what in ("response", "run")),
)
ARGUMENT = {"refusal": 1, "_unauthorized": 0}  # place of the code among the arguments


def _codes_in(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        given: list[ast.expr] = []
        if name in ARGUMENT:
            given = node.args[ARGUMENT[name] : ARGUMENT[name] + 1]
        elif name in ("Problem", "BadInputError") or name.endswith("Error"):
            given = [each.value for each in node.keywords if each.arg == "code"]
        yield from (each.value for each in given if isinstance(each, ast.Constant) and isinstance(each.value, str))


def _codes_of_the_source() -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "hermes").rglob("*.py"):
        if not path.relative_to(ROOT).as_posix().startswith(CLIENT_SIDE):
            found.update(_codes_in(path.read_text(encoding="utf-8")))
    return found


def test_every_code_in_the_source_is_listed() -> None:
    found = _codes_of_the_source()
    assert {"invalid_api_key", "not_offered", "call_not_waiting", "key_budget_exceeded"} <= found
    assert sorted(found - LISTED) == []


@pytest.mark.parametrize("code", [*MADE_BY_NAME, *MADE_FROM_PARTS])
def test_a_code_that_is_computed_is_listed(code: str) -> None:
    assert code in LISTED


@pytest.mark.parametrize("kind", FailureKind)
def test_every_failure_of_a_turn_is_listed(kind: FailureKind) -> None:
    assert problem.of_failure(Failure(kind=kind, message="no"), keyed=False).code in LISTED


def test_the_listed_status_is_the_real_one() -> None:
    text = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?) \| (\d{3}) \|", text, re.MULTILINE)
    status = {code: int(number) for codes, number in rows for code in re.findall(r"`(\w+)`", codes)}
    for kind in FailureKind:
        said = problem.of_failure(Failure(kind=kind, message="no"), keyed=False)
        assert status[said.code] == said.status
    for code in ("wrong_phase", "unknown_process", "unprocessable", "invalid_value", "not_a_command"):
        assert status[code] == problem.of_error(BadInputError("no", code=code)).status
