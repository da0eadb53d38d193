from __future__ import annotations

import pytest

from hermes.domain.text.listing import counted, some


@pytest.mark.parametrize(("number", "said"), [(1, "0"), (5, "0, 1, 2, 3, 4"), (7, "0, 1, 2, 3, 4 and 2 more")])
def test_a_few_are_named_and_the_rest_is_counted(number: int, said: str) -> None:
    assert some(list(map(str, range(number)))) == said


def test_one_thing_is_no_plural() -> None:
    assert counted(1, "process runs", "processes run") == "1 process runs"
    assert counted(0, "process runs", "processes run") == "0 processes run"
