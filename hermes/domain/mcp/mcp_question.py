"""Question that an MCP server asks a person during a tool call, its stored form, and how an answer is read. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import StrEnum
from hashlib import sha256
from typing import Any

from hermes.domain.errors import BadInputError
from hermes.domain.text.visible_text import visible
from hermes.domain.values import dataclass

FACT = "mcp:question:"
KEEP_S = 7 * 86_400.0
_MAX_MESSAGE = 2_000
_MAX_FIELDS = 20
_YES = frozenset({"yes", "true", "y", "1"})
_NO = frozenset({"no", "false", "n", "0"})


class QuestionState(StrEnum):
    OPEN = "open"
    ANSWERED = "answered"
    DECLINED = "declined"
    USED = "used"  # the server has the answer


@dataclass(frozen=True, slots=True, kw_only=True)
class McpQuestion:
    id: str
    server: str
    session: str
    message: str
    asked_at: float
    schema: str = ""  # JSON schema of the form; empty: the person opens `url` and confirms
    url: str = ""
    state: QuestionState = QuestionState.OPEN
    answer: str = ""  # JSON object


def question_id(session: str, server: str, message: str, schema: str, url: str) -> str:
    """Return an id that the same question of the same conversation has again, after a crash for example."""
    return sha256(json.dumps([session, server, message, schema, url]).encode()).hexdigest()[:8]


def make_question(
    *, session: str, server: str, message: str, schema: Mapping[str, Any] | None, url: str, now: float
) -> McpQuestion:
    text = message.encode("utf-8", "replace").decode()[:_MAX_MESSAGE]
    form = "" if schema is None else json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
    return McpQuestion(
        id=question_id(session, server, text, form, url),
        server=server,
        session=session,
        message=text,
        asked_at=now,
        schema=form,
        url=url,
    )


def in_words(question: McpQuestion) -> str:
    """Return the question for the person, with the way to answer it."""
    lines = [f"The MCP server {question.server} asks:", visible(question.message)]
    if question.url:
        lines += [f"It wants you to open {visible(question.url)}", f"Write /mcp answer {question.id} yes when done."]
    else:
        fields = _fields(question)
        lines += [f"- {_field_in_words(name, field, question)}" for name, field in fields.items()]
        lines.append(f"Write /mcp answer {question.id} {_example(fields)}")
    lines.append(f"/mcp decline {question.id} refuses. Never enter a password here.")
    return "\n".join(lines)


def _fields(question: McpQuestion) -> dict[str, dict[str, Any]]:
    form = json.loads(question.schema or "{}")
    properties = form.get("properties") if isinstance(form, dict) else None
    if not isinstance(properties, dict):
        return {}
    return {str(name): each for name, each in list(properties.items())[:_MAX_FIELDS] if isinstance(each, dict)}


def _required(question: McpQuestion) -> list[str]:
    form = json.loads(question.schema or "{}")
    required = form.get("required") if isinstance(form, dict) else None
    return [str(each) for each in required] if isinstance(required, list) else []


def _field_in_words(name: str, field: Mapping[str, Any], question: McpQuestion) -> str:
    kind = str(field.get("type", "text"))
    said = ", ".join(map(str, _choices(field))) or {"string": "text"}.get(kind, kind)
    about = str(field.get("description") or field.get("title") or "")
    needed = "" if name in _required(question) else ", optional"
    return visible(f"{name} ({said}{needed}){f': {about}' if about else ''}")[:300]


def _choices(field: Mapping[str, Any]) -> list[Any]:
    if isinstance(field.get("enum"), list):
        return list(field["enum"])
    options = field.get("oneOf")
    if isinstance(options, list):
        return [each.get("const") for each in options if isinstance(each, dict)]
    return []


def _example(fields: Mapping[str, Any]) -> str:
    if len(fields) == 1:
        return "VALUE"
    return "NAME=VALUE; NAME=VALUE" if fields else "yes"


def read_answer(question: McpQuestion, text: str) -> str:
    """Return a person's answer as a JSON object. Raises BadInputError if it does not fit."""
    fields, text = _fields(question), text.strip()
    if question.url or not fields:
        if text.lower() not in _YES:
            raise BadInputError(f"answer with yes, or refuse with /mcp decline {question.id}", param="answer")
        return "{}"
    given = _given(fields, text)
    if unknown := next((name for name in given if name not in fields), ""):
        raise BadInputError(f"{unknown[:40]} is not asked for; asked are {', '.join(fields)}", param="answer")
    values = {name: _value(name, fields[name], value) for name, value in given.items()}
    if missing := [name for name in _required(question) if name in fields and name not in values]:
        raise BadInputError(f"{missing[0]} is missing; write NAME=VALUE; NAME=VALUE", param="answer")
    return json.dumps(values, ensure_ascii=False)


def _given(fields: Mapping[str, Any], text: str) -> dict[str, Any]:
    if text.startswith("{"):
        try:
            value = json.loads(text)
        except ValueError:
            raise BadInputError("the answer starts like JSON and is not valid JSON", param="answer") from None
        return {str(name): each for name, each in value.items()}
    [*names] = fields
    first = text.partition("=")[0].strip()
    if len(names) == 1 and first != names[0]:
        return {names[0]: text}
    found: dict[str, Any] = {}
    for part in filter(None, (each.strip() for each in text.split(";"))):
        name, equals, value = part.partition("=")
        if not equals:
            raise BadInputError("write NAME=VALUE; NAME=VALUE", param="answer")
        found[name.strip()] = value.strip()
    return found


def _value(name: str, field: Mapping[str, Any], value: Any) -> Any:
    if choices := _choices(field):
        match = next((each for each in choices if str(each).casefold() == str(value).casefold()), None)
        if match is None:
            raise BadInputError(f"{name} must be one of {', '.join(map(str, choices))}", param="answer")
        return match
    match field.get("type"):
        case "boolean":
            word = str(value).lower()
            if word not in _YES | _NO:
                raise BadInputError(f"{name} must be yes or no", param="answer")
            return word in _YES
        case "integer" | "number" as kind:
            return _number(name, value, whole=kind == "integer")
        case "array":
            return value if isinstance(value, list) else [each.strip() for each in str(value).split(",")]
        case _:
            return str(value)


def _number(name: str, value: Any, *, whole: bool) -> int | float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not abs(number) <= 2**53 or (whole and not number.is_integer()):
        raise BadInputError(f"{name} must be a {'whole ' if whole else ''}number", param="answer")
    return int(number) if whole else number


# ------------------------------------------------------------ stored form


def encode(question: McpQuestion) -> bytes:
    stored = {name: getattr(question, name) for name in McpQuestion.__annotations__}
    return json.dumps(stored, ensure_ascii=False).encode()


def decode(raw: bytes | None) -> McpQuestion | None:
    """Return a stored question; None if there is none that this version can read."""
    if raw is None:
        return None
    try:
        stored = json.loads(raw)
        return McpQuestion(**{**stored, "state": QuestionState(stored["state"])})
    except (ValueError, KeyError, TypeError):
        return None
