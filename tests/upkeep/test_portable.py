"""Export format: lossless round trips, and errors that name the line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.domain.errors import BadInputError
from hermes.domain.ids import Seq, SessionId
from hermes.domain.records import BadRecord, LogEntry, Record
from hermes.domain.turn.message import EncodedMessage
from hermes.upkeep import portable
from hermes.upkeep.portable import Exported, from_lines, read_export, to_lines
from tests.storage.samples import message

TEXTS = st.text(st.characters(codec="utf-8"))
MESSAGES = st.dictionaries(TEXTS, TEXTS).map(lambda fields: EncodedMessage(json.dumps(fields).encode()))
IDS = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_.:-]{0,20}\Z").map(SessionId)
PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    str: TEXTS,
    bytes: st.binary(),
    int: st.integers(-(2**63), 2**63),
    float: st.floats(allow_nan=False),
    bool: st.booleans(),
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    if hint is EncodedMessage:
        return MESSAGES
    if hint is SessionId:
        return IDS
    if type(None) in get_args(hint):
        [inner] = [each for each in get_args(hint) if each is not type(None)]
        return st.none() | values_of(inner)
    if get_origin(hint) is tuple:
        return st.lists(values_of(get_args(hint)[0]), max_size=2).map(tuple)
    hint = getattr(hint, "__supertype__", hint)
    if is_dataclass(hint):
        return instances(hint)  # type: ignore[arg-type]
    return st.sampled_from(hint) if isinstance(hint, type) and issubclass(hint, StrEnum) else PLAIN[hint]


def instances(kind: type) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    return st.builds(kind, **{field.name: values_of(hints[field.name]) for field in fields(kind)})


RECORDS = st.one_of([instances(kind) for kind in (*get_args(Record), BadRecord)])
LOGS = st.lists(RECORDS, min_size=1, max_size=4).map(
    lambda records: [LogEntry(seq=Seq(seq), record=record) for seq, record in enumerate(records)]
)


def encoded(exported: Exported) -> list[bytes]:
    return [f"{line}\n".encode() for line in to_lines(exported, now=1.5)]


A_TALK: Exported = {
    SessionId("a"): [LogEntry(seq=Seq(seq), record=message(f"number {seq}")) for seq in range(3)],
}


@given(st.dictionaries(IDS, LOGS, min_size=1, max_size=3))
def test_every_record_comes_back_as_it_was(exported: Exported) -> None:
    back = from_lines(encoded(exported))
    assert back == exported
    assert list(back) == list(exported)


@given(st.integers(0, 3), st.data())
def test_a_changed_byte_is_found_and_its_line_is_named(line: int, data: st.DataObject) -> None:
    lines = encoded(A_TALK)
    at = data.draw(st.integers(0, len(lines[line]) - 2))
    other = data.draw(st.integers(32, 126).filter(lambda byte: byte != lines[line][at]))
    lines[line] = lines[line][:at] + bytes([other]) + lines[line][at + 1 :]
    assert refusal_of(lines) in {"", f"line {line + 1}"}


def refusal_of(lines: list[bytes]) -> str:
    """The line that is named; empty when only white space between values has changed."""
    try:
        assert from_lines(lines) == A_TALK
    except BadInputError as error:
        named = re.search(r"(first )?line( \d+)?", str(error))
        assert named
        return named[0].replace("first line", "line 1")
    return ""


@pytest.mark.parametrize("missing", [1, 2, 3])
def test_a_missing_line_is_noticed(missing: int) -> None:
    lines = encoded(A_TALK)
    del lines[missing]
    with pytest.raises(BadInputError, match="nothing was imported"):
        from_lines(lines)


def test_reformatted_export_is_accepted() -> None:
    lines = [json.dumps(json.loads(line), sort_keys=True, indent=None).encode() for line in encoded(A_TALK)]
    assert from_lines(lines) == A_TALK


def resealed(change: Callable[[dict[str, Any]], None]) -> bytes:
    """The second line, changed by somebody who knows about the checksum."""
    from hermes.upkeep.portable import _checksum

    values = json.loads(encoded(A_TALK)[1])
    del values["crc"]
    change(values)
    return json.dumps({**values, "crc": _checksum(values)}).encode()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda line: line.update(kind="Surprise"), "unknown kind of record: Surprise"),
        (lambda line: line["record"].update(mood="good"), "no field 'mood'"),
        (lambda line: line["record"].pop("at"), "without all of its fields"),
        (lambda line: line["record"].update(at="noon"), "'at' is not a float"),
        (lambda line: line["record"].update(turn="\ud800"), "surrogates"),
        (lambda line: line["record"].update(messages=["[]"]), "not a message"),
        (lambda line: line["record"].update(options={"base64": "?"}), "neither text nor base64"),
        (lambda line: line.update(session="../up"), "is not a valid session id"),
        (lambda line: line.update(session="b"), "not named in the first line"),
        (lambda line: line.update(session=["a"]), "not a str"),
        (lambda line: line.update(seq=7), "expected record 0 of a"),
        (lambda line: line.pop("record"), "has no 'record'"),
    ],
)
def test_bad_line_of_an_export_is_named(change: Callable[[dict[str, Any]], None], said: str) -> None:
    lines = encoded(A_TALK)
    lines[1] = resealed(change)
    with pytest.raises(BadInputError, match=rf"line 2 is damaged \(.*{said}"):
        from_lines(lines)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"hello", "not an export of Hermes"),
        (b"[]", "not an export of Hermes"),
        (b'{"a": 1}', "not an export of Hermes"),
        (b"[" * 100_000, "not an export of Hermes"),
    ],
)
def test_another_file_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(BadInputError, match=said):
        from_lines(content.splitlines(keepends=True))


def test_an_export_of_a_newer_format_is_refused() -> None:
    from hermes.upkeep.portable import _line

    newer = _line({"hermes_export": 2, "version": "9.0", "sessions": ["a"], "records": 0})
    with pytest.raises(BadInputError, match=r"format 2.* from version 9\.0"):
        from_lines([newer.encode()])


def test_export_of_excessive_size_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.jsonl"
    file.write_bytes(b"x" * 200)
    monkeypatch.setattr(portable, "MAX_LINE_BYTES", 100)
    with pytest.raises(BadInputError, match="too large"):
        read_export(file)
    file.write_bytes(b"{}\n" * 200)
    monkeypatch.setattr(portable, "MAX_BYTES", 2)
    with pytest.raises(BadInputError, match="too large"):
        read_export(file)
