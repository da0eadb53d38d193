"""One type gives the parser, the error text and the OpenAPI schema."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from hermes.adapters.http.parameter import Flag
from hermes.adapters.http.schema import Fields, Metadata, SessionIdText, Text, decode
from hermes.domain.errors import BadInputError


class Apple(Fields, tag="apple", tag_field="type"):
    weight: Annotated[float, Meta(ge=0, le=2)]


class Pear(Fields, tag="pear", tag_field="type"):
    color: Literal["green", "red"]


class Basket(Fields):
    fruit: Text | Annotated[list[Apple | Pear], Meta(min_length=1)]
    count: Annotated[int, Meta(ge=1, le=9)] | None = None
    only: Annotated[int, Meta(ge=1, le=1)] | None = None
    owner: SessionIdText | None = None
    labels: Metadata | None = None
    open: bool | None = None
    flag: Flag = "0"


@pytest.mark.parametrize(
    ("value", "param", "text"),
    [
        ([], None, "The body must be a JSON object."),
        ({}, "fruit", "fruit is missing: it must be a string without NUL or a list of"),
        ({"fruit": []}, "fruit", "or a list of at least 1 item."),
        ({"fruit": "a\0"}, "fruit", "fruit must be a string without NUL"),
        ({"fruit": [{"type": "plum"}]}, "fruit[0].type", "fruit[0].type must be apple or pear."),
        ({"fruit": [{}]}, "fruit[0].type", "fruit[0].type is missing: it must be apple or pear."),
        (
            {"fruit": [{"type": "apple", "weight": 3}]},
            "fruit[0].weight",
            "fruit[0].weight must be a number from 0 to 2.",
        ),
        ({"fruit": [{"type": "pear", "color": 7}]}, "fruit[0].color", "fruit[0].color must be one of green, red."),
        ({"fruit": "", "count": 0}, "count", "count must be a whole number from 1 to 9."),
        ({"fruit": "", "count": True}, "count", "count must be a whole number from 1 to 9."),
        ({"fruit": "", "only": 2}, "only", "only must be 1."),
        ({"fruit": "", "owner": "a\n"}, "owner", "owner must be 1 to 128 letters"),
        ({"fruit": "", "labels": {"a": 1}}, "labels", "labels must be an object of at most 16 strings"),
        ({"fruit": "", "labels": {"a" * 65: ""}}, "labels", "labels must be an object of at most 16 strings"),
        ({"fruit": "", "open": 1}, "open", "open must be true or false."),
        ({"fruit": "", "flag": "TRUE"}, "flag", "flag must be one of 0, 1, false, true."),
    ],
)
def test_refusal_names_the_place_and_what_is_allowed(value: Any, param: str | None, text: str) -> None:
    with pytest.raises(BadInputError) as refused:
        decode(value, Basket)
    assert refused.value.param == param
    assert text in str(refused.value)


def test_unknown_fields_are_allowed_and_null_is_not_given() -> None:
    assert decode({"fruit": "x", "count": None, "more": 1}, Basket) == Basket(fruit="x")
