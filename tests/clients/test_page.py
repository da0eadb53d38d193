"""The matrix page says what the cells say, and the same cells make the same page."""

from __future__ import annotations

from pathlib import Path

from tests.clients.__main__ import PAGE
from tests.clients.catalog import CLIENTS
from tests.clients.matrix import Cell, Outcome
from tests.clients.page import render
from tests.clients.results import merge
from tests.clients.scenarios import SCENARIOS


def _cell(scenario: str, outcome: Outcome = Outcome.OK, detail: str = "") -> Cell:
    place = {"client": "openai-python", "mode": "chat", "scenario": scenario}
    return Cell(**place, outcome=outcome, detail=detail, seconds=1.0, date="2026-01-02")


def test_page_lists_every_cell_and_the_reasons() -> None:
    cells = [_cell("plain"), _cell("stream", Outcome.LIMIT, "no streams"), _cell("picture", Outcome.FAILED, "a 400")]
    page = render(CLIENTS, cells)
    [row] = [line for line in page.splitlines() if line.startswith("| openai (Python) | chat")]
    marks = dict(zip(SCENARIOS, row.strip("| ").split(" | ")[2:], strict=True))
    assert {marks["plain"], marks["stream"], marks["picture"], marks["cancel"]} == {"ok", "limit", "**failed**", "-"}
    assert "chat stream: no streams" in page
    assert "chat picture: a 400" in page
    assert "LiteLLM" not in page  # it has not run


def test_page_of_the_docs_has_a_run_of_every_pinned_version() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    for client in CLIENTS:
        assert any(line.startswith(f"| {client.title} | {', '.join(client.packages)} |") for line in lines), (
            client.key
        )
        rows = [line for line in lines if line.startswith(f"| {client.title} | ") and line.count("|") > 10]
        assert len(rows) == len(client.modes), client.key


def test_later_run_replaces_its_cells_only(tmp_path: Path) -> None:
    kept = tmp_path / "results.json"
    merge(kept, [_cell("plain", Outcome.FAILED, "no"), _cell("stream")])
    merged = merge(kept, [_cell("plain")])
    assert [(cell.scenario, cell.outcome) for cell in merged] == [("plain", Outcome.OK), ("stream", Outcome.OK)]
    assert render(CLIENTS, merged) == render(CLIENTS, merge(kept, []))
