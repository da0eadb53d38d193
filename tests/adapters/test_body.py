"""Untrusted bytes become plain values or a clear refusal, never anything else."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.adapters.http.body import MAX_DEPTH, MAX_VALUES, parse
from hermes.domain.errors import BadInputError


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "not valid JSON"),
        (b"{", "line 1, column 2"),
        (b'{"a": [}', "line 1, column 8"),
        (b"{'a': 1}", "not valid JSON"),
        (b"[1] []", "Extra data"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        ('{"a": 1}'.encode("utf-16"), "not valid UTF-8"),
        (b'"\xff"', "not valid UTF-8 (at byte 1)"),
        (b'"\xed\xa0\x80"', "not valid UTF-8"),
        (b"[NaN]", "NaN"),
        (b"[Infinity]", "Infinity"),
        (b"[-Infinity]", "-Infinity"),
        (b"[1e999]", "too large"),
        (b"[" + b"9" * 6000 + b"]", "too large"),
        (b'{"a": 1, "a": 2}', "same key twice"),
        (b'{"a": {"b": 1, "\\u0062": 2}}', "same key twice"),
        (b'"a\x00b"', "not valid JSON"),
        (b'"\n"', "not valid JSON"),
        (b"[" * 5_000 + b"]" * 5_000, "levels deep"),
        (b"[" * 5_000, "levels deep"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "levels deep"),
        (b"[" * 65 + b"]" * 65, "levels deep"),
        (b"[" + b"1," * MAX_VALUES + b"1]", "values"),
        (b"[" + b'"",' * MAX_VALUES + b'""]', "strings"),
    ],
)
def test_each_bad_body_says_what_is_wrong_with_it(body: bytes, says: str) -> None:
    with pytest.raises(BadInputError) as caught:
        parse(body)
    assert says in str(caught.value)
    assert caught.value.code == "invalid_json"


@pytest.mark.parametrize(
    "body",
    [
        b"[" * MAX_DEPTH + b"]" * MAX_DEPTH,
        b'[{"a":' * 32 + b"1" + b"}]" * 32,
        b'{"a": "' + b"[" * 5_000 + b'"}',
        b'{"a": "\\\\", "b": "' + b"{" * 5_000 + b'"}',
        b'{"a": "\\"' + b"[" * 5_000 + b'"}',
        b"[9223372036854775807, -9223372036854775808]",
        b'"' + b"x" * 2**20 + b'"',
        b" \n\t{} ",
    ],
)
def test_what_only_looks_bad_is_taken(body: bytes) -> None:
    assert parse(body) == json.loads(body)


@pytest.mark.parametrize("text", [r'"\ud800"', r'{"a\uDFFF b": 1}', r'["\ude00\ud83d"]'])
def test_half_of_a_surrogate_pair_is_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="surrogate"):
        parse(text.encode())
    assert parse(rb'"\ud83d\ude00 \\ud800"') == "\U0001f600 \\ud800"


def test_whole_numbers_are_integers_and_large_ones_are_floats() -> None:
    value = parse(b"[39.0, 1e3, 0.5, 18446744073709551616, -9223372036854775809, 1e300]")
    assert value == [39, 1000, 0.5, 2.0**64, -(2.0**63), 1e300]
    assert [type(each) for each in value] == [int, int, float, float, float, float]


@given(st.binary() | st.text(alphabet='{}[]",:\\ud8f01eN.- ', max_size=300).map(str.encode))
def test_no_bytes_do_anything_but_parse_or_be_refused(body: bytes) -> None:
    try:
        value = parse(body)
    except BadInputError:
        return
    assert value == json.loads(body)


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(_json)
def test_every_json_value_arrives_as_it_was_sent(value: object) -> None:
    assert parse(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 2**23,
        b"[" + b"[]," * (2**23 // 3) + b"0]",
        b"[" + b'"",' * (2**23 // 3) + b"0]",
        b'"' + b'\\"' * 2**22 + b'"',
        b'"' + b"a" * 2**23 + b'"',
        b'"' * 2**23,
    ],
    ids=["open", "lists", "strings", "escapes", "text", "quotes"],
)
def test_hostile_body_takes_no_longer_than_a_few_times_a_normal_one(body: bytes) -> None:
    """Everybody else waits for this. The honest body is as large: 24,000 messages."""
    honest = json.dumps([{"role": "user", "content": "x" * 310}] * 24_000).encode()
    assert _seconds(body) < 10 * _seconds(honest)


def _seconds(body: bytes) -> float:
    began = time.process_time()
    with contextlib.suppress(BadInputError):
        parse(body)
    return time.process_time() - began
