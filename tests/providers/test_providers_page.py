"""The page of model endpoints has a run of every one, each in an exact version."""

from __future__ import annotations

from tests.clients.matrix import Cell, Outcome
from tests.clients.page import render
from tests.providers.backends import BACKENDS
from tests.providers.catalog import IMPLEMENTATIONS
from tests.providers.page import PAGE, TEXTS
from tests.providers.scenarios import SCENARIOS


def test_page_has_a_run_of_every_pinned_version() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for each in IMPLEMENTATIONS:
        assert all("==" in package for package in each.packages)
        assert any(line.startswith(f"| {each.title} | {', '.join(each.packages)} |") for line in lines), each.key
        rows = [line for line in lines if line.startswith(f"| {each.title} | ") and line.count("|") > len(SCENARIOS)]
        assert len(rows) == len(each.modes), each.key


def test_every_implementation_can_be_started() -> None:
    assert list(BACKENDS) == [each.key for each in IMPLEMENTATIONS]


def test_page_names_what_failed() -> None:
    place = {"client": "llmock", "mode": "chat", "scenario": "cut"}
    cell = Cell(**place, outcome=Outcome.FAILED, detail="no answer", seconds=1.0, date="2026-01-02")
    page = render(IMPLEMENTATIONS, [cell], TEXTS)
    assert "llmock, chat cut: no answer" in page
    assert "Limits" not in page
