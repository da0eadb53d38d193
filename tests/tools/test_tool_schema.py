from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest

from hermes.tools.tool_schema import ArgumentError, check_arguments, parameters_of


async def example(
    context: object,
    *,
    path: Annotated[str, "where"],
    limit: int = 5,
    mode: Literal["fast", "slow"] = "fast",
    ratio: float | None = None,
    deep: bool = False,
    names: list[str] | None = None,
    table: dict[str, int] | None = None,
) -> None: ...


SCHEMA = parameters_of(example)


def test_a_signature_becomes_a_schema_without_its_context() -> None:
    assert SCHEMA["required"] == ["path"]
    assert SCHEMA["properties"]["path"] == {"type": "string", "description": "where"}
    assert SCHEMA["properties"]["limit"] == {"type": "integer", "default": 5}
    assert SCHEMA["properties"]["mode"]["enum"] == ["fast", "slow"]
    assert SCHEMA["properties"]["names"] == {"type": "array", "items": {"type": "string"}}
    assert SCHEMA["properties"]["table"]["additionalProperties"] == {"type": "integer"}


def test_harmless_mistakes_of_models_are_put_right() -> None:
    given = {"path": "a", "limit": "7", "deep": "true", "ratio": 1, "names": ["x"], "table": {"a": 2.0}, "mode": None}
    assert check_arguments(SCHEMA, given) == {
        "path": "a",
        "limit": 7,
        "deep": True,
        "ratio": 1.0,
        "names": ["x"],
        "table": {"a": 2},
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "must be a JSON object"),
        ({}, "'path' is missing"),
        ({"path": None}, "'path' is missing"),
        ({"path": 5}, "'path' must be of type string"),
        ({"path": "a", "depth": 1}, "unknown argument 'depth'"),
        ({"path": "a", "limit": 1.5}, "'limit' must be of type integer"),
        ({"path": "a", "limit": True}, "'limit' must be of type integer"),
        ({"path": "a", "limit": 2**64}, "'limit' must be of type integer"),
        ({"path": "a", "ratio": float("nan")}, "'ratio' must be of type number"),
        ({"path": "a", "mode": "never"}, "one of fast, slow"),
        ({"path": "a", "names": ["x", 1]}, "'names[1]' must be of type string"),
        ({"path": "a", "table": {"k": "v"}}, "'table.k' must be of type integer"),
    ],
)
def test_a_wrong_argument_is_named(arguments: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said.replace("[", r"\[")):
        check_arguments(SCHEMA, arguments)
