"""Pure parts of the live view: rates, graphs, columns and short words."""

from __future__ import annotations

import pytest

from hermes.tui.top import header, words
from hermes.tui.top.sample import ActorRow, Sample, SessionRow, TokenUse, sample_of
from hermes.tui.top.table import Tab, chosen, columns_of, fitted, rows_of
from hermes.tui.top.trend import MAX_POINTS, Trends, graph, with_sample


def trends_of(*samples: Sample) -> Trends:
    trends = Trends()
    for sample in samples:
        trends = with_sample(trends, sample)
    return trends


def test_rates_are_differences_over_the_time_between_samples() -> None:
    first = Sample(
        at=10.0, uptime_s=5.0, commits=10, commits_took_s=0.1, cpu_s=1.0, usage=TokenUse(prompt_tokens=100)
    )
    second = Sample(
        at=12.0,
        uptime_s=7.0,
        commits=14,
        commits_took_s=0.3,
        cpu_s=1.5,
        usage=TokenUse(prompt_tokens=100, completion_tokens=50),
        turns_ended={"answered": 3, "timeout": 1},
    )
    trends = trends_of(first, second)
    assert trends.commits == (2.0,)
    assert trends.commit_s == pytest.approx((0.05,))
    assert trends.tokens == (25.0,)
    assert trends.cpu == (0.25,)
    assert trends.turns == (2.0,)


def test_restart_of_the_daemon_gives_no_negative_rate() -> None:
    before, after = Sample(at=10.0, uptime_s=100.0, commits=50), Sample(at=12.0, uptime_s=1.0, commits=2)
    trends = trends_of(before, after, Sample(at=13.0, uptime_s=2.0, commits=5))
    assert trends.commits == (3.0,)


def test_trends_keep_a_bounded_number_of_points() -> None:
    trends = trends_of(*(Sample(at=float(n), uptime_s=float(n), commits=n) for n in range(MAX_POINTS * 3)))
    assert len(trends.commits) == MAX_POINTS


def test_graph_shows_the_last_values_from_zero_to_their_maximum() -> None:
    assert graph([0.0, 1.0, 2.0], 3) == "▁▅█"
    assert graph([5.0, 0.0, 1.0, 2.0], 3, ascii_only=True) == "_=#"
    assert graph([], 4) == "    "
    assert graph([0.0, 0.0], 2) == "▁▁"


@pytest.mark.parametrize("tab", list(Tab))
@pytest.mark.parametrize("width", [20, 50, 80, 200])
def test_columns_fit_the_width_or_only_the_necessary_ones_are_left(tab: Tab, width: int) -> None:
    columns = fitted(tab, width)
    assert all(each.width >= 1 for each in columns)
    if sum(each.width + 2 for each in columns) > width:
        assert not any(each.drop for each in columns_of(tab) if each.name in {left.name for left in columns})


def test_row_of_a_session_has_the_cells_of_the_chosen_columns() -> None:
    session = SessionRow(id="20260102_030405_1a2b3c4d", phase="running", doing="model", step=3, step_age_s=75.0)
    sample = Sample(at=0.0, sessions=[session])
    columns = fitted(Tab.SESSIONS, 60)
    cells = dict(
        zip(
            [each.name for each in columns],
            chosen(rows_of(Tab.SESSIONS, sample, {session.id: "taxes"})[0], Tab.SESSIONS, columns),
            strict=True,
        )
    )
    assert (cells["STATE"], cells["STEP"], cells["FOR"], cells["ABOUT"]) == (
        "running",
        "model call 3",
        "1m15s",
        "taxes",
    )


def test_filter_of_actors_needs_every_word() -> None:
    sample = Sample(
        at=0.0, actors=[ActorRow(kind="adapter", name="slack", state="down"), ActorRow(kind="x", name="y", state="z")]
    )
    assert [row.cells[2] for row in rows_of(Tab.ACTORS, sample, {}, "DOWN slack")] == ["slack"]


def test_header_fits_the_width_and_names_the_problem() -> None:
    trends = trends_of(Sample(at=1.0, version="9", phases={"idle": 4, "waiting": 1}))
    shown = header.lines(trends, 40, problem="no answer: it is away")
    assert len(shown) == 4
    assert all(len(line) <= 40 for line in shown)
    assert "5 live" in shown[1]
    assert "not ready" not in header.lines(trends, 200)[0]


def test_sample_of_another_version_keeps_what_is_known() -> None:
    sample = sample_of({"at": 1, "new": True, "sessions": [{"id": "s", "phase": "idle", "later": [1]}]})
    assert (sample.at, sample.sessions[0].id, sample.commits) == (1.0, "s", 0)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (999, "999"), (1500, "1.5k"), (25_000, "25k"), (2_300_000, "2.3M"), (4e9, "4.0G"), (9e12, "9T")],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert words.number(value) == text


def test_control_characters_of_a_tool_call_do_not_reach_the_terminal() -> None:
    row = SessionRow(id="s", phase="running", doing="tools", what=["terminal: \x1b[2Jls\nrm"])
    assert words.doing(row) == "terminal: �[2Jls rm"


def test_counts_fit_a_narrow_terminal() -> None:
    shown = header.lines(
        trends_of(Sample(at=1.0, sessions_stored=1, phases={"idle": 1}, turns_ended={"answered": 2})), 80
    )
    assert shown[1] == "1 session, 1 live  0 waiting  0 running  2 answered, 0 failed"
    busy = header.lines(trends_of(Sample(at=1.0, sessions_stored=2, turns_running=2, turns_calling=1)), 80)
    assert "2 sessions, 0 live  0 waiting  2 running (1 in a model call)" in busy[1]
