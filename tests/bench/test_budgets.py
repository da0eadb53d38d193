"""Budgets of the bench: what counts as kept, and what page and chart show."""

from __future__ import annotations

import asyncio
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from bench import ratios
from bench.__main__ import PARTS, main
from bench.budgets import BUDGETS, Budget
from bench.chart import chart
from bench.drive import closed_loop
from bench.fill import fill, session_id
from bench.harness import server
from bench.page import budget_table, put
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.verify import verify

_SPEED = Budget(what="speed & size", figure="a.speed", limit=10, at_most=False)
_TIME = Budget(what="time", figure="a.time", limit=2)


@pytest.mark.parametrize(
    ("budget", "value", "kept", "used"),
    [(_SPEED, 20.0, True, 0.5), (_SPEED, 5.0, False, 2.0), (_TIME, 2.0, True, 1.0), (_TIME, 3.0, False, 1.5)],
)
def test_budget_is_kept_up_to_its_limit(budget: Budget, value: float, kept: bool, used: float) -> None:
    figures = {budget.figure: value}
    assert budget.kept(figures) is kept
    assert budget.used(figures) == used


def test_missing_figure_is_neither_kept_nor_missed() -> None:
    assert _TIME.kept({}) is None


def test_budgets_name_figures_of_existing_parts() -> None:
    parts = {budget.figure.split(".")[0] for budget in BUDGETS}
    assert parts - {"sessions_to_threads"} <= set(PARTS)


def test_chart_has_a_bar_for_each_measured_budget() -> None:
    svg = ET.fromstring(chart({"a.speed": 5.0, "a.time": 1.0}, (_SPEED, _TIME)))
    bars = [each.get("width") for each in svg.iter("{http://www.w3.org/2000/svg}rect")]
    assert bars == ["300", "300.0", "300", "120.0"]


def test_page_keeps_what_is_around_the_table(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("before\n<!-- budgets -->\nold\n<!-- end of budgets -->\nafter\n")
    put("budgets", budget_table({BUDGETS[0].figure: 1e6}, "now"), page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("\nafter\n")
    assert "old" not in text
    assert "**1,000,000**" in text


def test_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nothing"]) == 2
    assert "nothing" in capsys.readouterr().err


def test_ratios_fail_when_one_regresses(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    figures = {limit.figure: limit.limit / 2 for limit in ratios.LIMITS}
    monkeypatch.setattr(ratios, "measure", lambda: figures)
    assert ratios.main() == 0
    figures["awake_kb"] = 1000.0
    assert ratios.main() == 1
    assert "REGRESSION" in capsys.readouterr().out


def test_filled_store_is_sound_and_holds_the_sessions(tmp_path: Path) -> None:
    fill(tmp_path, 30, turns=3)
    fill(tmp_path, 2, first=30, pending=True)
    assert not verify(tmp_path / "store")
    engine = LmdbEngine.open(tmp_path / "store")
    try:
        head = engine.head(session_id(7))
        assert head is not None
        assert (head.id, head.turns, head.messages) == (session_id(7), 3, 6)
        assert sorted(engine.pending()) == [session_id(30), session_id(31)]
    finally:
        engine.close()


@pytest.mark.timeout(60)
def test_model_follows_the_wish_in_a_message() -> None:
    with server("bench.model") as model:
        streamed = asyncio.run(closed_loop(model, ["s"], wish="delay=0.01 tokens=3 rate=1000", stream=True))
        whole = asyncio.run(closed_loop(model, ["s"]))
    assert streamed.exchanges[0].body.count(b"word ") == 3
    assert b"An answer of a few words." in whole.exchanges[0].body
