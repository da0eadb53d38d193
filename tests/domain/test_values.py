from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from hermes.domain.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Lean:
    name: str
    size: int = 3
    secret: str = dataclasses.field(default="s", repr=False)
    tags: dict[str, str] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Empty:
    pass


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Standard:
    name: str
    size: int = 3
    secret: str = dataclasses.field(default="s", repr=False)
    tags: dict[str, str] = dataclasses.field(default_factory=dict)


def test_it_looks_compares_and_hashes_like_the_standard_one() -> None:
    for kind in (Lean, Standard):
        assert repr(kind(name="x")) == f"{kind.__name__}(name='x', size=3, tags={{}})"
        assert kind(name="x") == kind(name="x", size=3)
        assert kind(name="x") != kind(name="y")
    other: Any = Standard(name="x")
    assert Lean(name="x") != other
    assert hash(Empty()) == hash(Empty())
    assert Empty() == Empty()
    assert Lean(name="a").tags is not Lean(name="a").tags


def test_a_value_cannot_be_changed_and_has_no_room_for_more() -> None:
    value: Any = Lean(name="x")
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.name = "y"
    with pytest.raises(dataclasses.FrozenInstanceError):
        value.new = 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        del value.name
    assert not hasattr(value, "__dict__")


def test_replace_fields_and_matching_work() -> None:
    value = dataclasses.replace(Lean(name="x"), size=5)
    assert (value.name, value.size) == ("x", 5)
    assert [field.name for field in dataclasses.fields(Lean)] == ["name", "size", "secret", "tags"]
    match value:
        case Lean(name="x", size=size):
            assert size == 5
        case _:
            pytest.fail("it should match")


def test_wrong_arguments_are_errors() -> None:
    anything: Any = Lean
    with pytest.raises(TypeError):
        anything()
    with pytest.raises(TypeError):
        anything(name="x", other=1)
    with pytest.raises(TypeError):
        anything("x")


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_values_can_be_copied_and_pickled(duplicate: Callable[[Lean], Lean]) -> None:
    value = Lean(name="x", size=5, tags={"a": "b"})
    assert duplicate(value) == value


def test_explicit_none_is_not_replaced_by_the_default() -> None:
    unusual: Any = None
    assert Lean(name="x", tags=unusual).tags is None
