"""Modules with a stand-in: imported with their first use, also by one who asks meanwhile."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hermes.system.late_module import imported_late

LATE = "this_module_is_late"


def test_the_first_use_imports_the_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{LATE}.py").write_text("value = 7")
    monkeypatch.syspath_prepend(tmp_path)
    with imported_late(LATE):
        import this_module_is_late as stand_in  # type: ignore[import-not-found]
    assert LATE not in sys.modules
    assert stand_in.value == 7
    assert sys.modules.pop(LATE).value == 7


def test_a_use_meanwhile_imports_it_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / f"{LATE}.py").write_text("value = 7")
    monkeypatch.syspath_prepend(tmp_path)
    with imported_late(LATE):
        from this_module_is_late import value
    assert value == 7
    assert sys.modules.pop(LATE).value == 7


def test_a_module_that_is_there_stays() -> None:
    with imported_late("sys"):
        import sys as same
    assert same is sys
