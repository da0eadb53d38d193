"""Every error class has a code of its own, and the documents list it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from hermes.domain import errors
from hermes.domain.errors import BadInputError, HermesError

DOCUMENT = Path(__file__).parents[2] / "docs/errors.md"
CLASSES = [
    each
    for _, each in inspect.getmembers(errors, inspect.isclass)
    if issubclass(each, HermesError) and each.__module__ == errors.__name__
]


def test_every_error_class_defines_its_own_code() -> None:
    assert len(CLASSES) > 20
    assert [each.__name__ for each in CLASSES if "code" not in vars(each)] == []


def test_no_two_error_classes_share_a_code() -> None:
    assert len({each.code for each in CLASSES}) == len(CLASSES)


def test_the_document_lists_exactly_these_codes() -> None:
    listed = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted((each.code, each.__name__) for each in CLASSES)


def test_a_request_may_name_a_more_specific_code() -> None:
    assert BadInputError("no").code == "invalid_value"
    assert BadInputError("no", code="wrong_phase").code == "wrong_phase"
