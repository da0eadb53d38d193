"""What follows from a look at a process, and from its end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.domain.process.process import EndReason, ProcessEnd, ProcessSample
from hermes.domain.process.process_state import CPU_FLOOR, ProcessRow, ended, row_of, summary, with_heartbeat
from tests.storage.samples import NOW, process

BEAT_S = 5.0


def look(**values: object) -> ProcessSample:
    return replace(ProcessSample(alive=True, output_bytes=0, last_output_at=None, cpu_s=0.0), **values)  # type: ignore[arg-type]


def row() -> ProcessRow:
    """One that this daemon has looked at before."""
    return with_heartbeat(row_of(process("proc_a"), NOW), look(), None, NOW, BEAT_S)


def test_a_heartbeat_alone_is_no_activity() -> None:
    after = with_heartbeat(row(), look(), None, NOW + 100, BEAT_S)
    assert (after.view.heartbeat_at, after.view.active_at) == (NOW + 100, NOW)


@pytest.mark.parametrize(
    ("found", "active"),
    [
        ({"cpu_s": CPU_FLOOR * BEAT_S * 0.9}, False),
        ({"cpu_s": CPU_FLOOR * BEAT_S}, True),
        ({"output_bytes": 1}, True),
        ({"cpu_s": None}, False),
    ],
)
def test_cpu_above_the_floor_or_output_is_activity(found: dict[str, object], active: bool) -> None:
    after = with_heartbeat(row(), look(**found), None, NOW + 5, BEAT_S)
    assert (after.view.active_at == NOW + 5) is active


def test_what_was_used_before_this_daemons_first_look_is_no_news() -> None:
    after = with_heartbeat(row_of(process("proc_a"), NOW), look(cpu_s=500.0), None, NOW + 5000, BEAT_S)
    assert after.view.active_at == NOW
    assert after.view.cpu_s == 500.0


def test_output_from_before_the_first_look_counts_from_when_it_was_written() -> None:
    found = look(output_bytes=9, last_output_at=NOW + 300)
    assert with_heartbeat(row_of(process("proc_a"), NOW), found, None, NOW + 5000, BEAT_S).view.active_at == NOW + 300


def test_the_start_moves_along_when_the_clock_is_set_and_stays_otherwise() -> None:
    steady = with_heartbeat(row(), look(age_s=100.5), None, NOW + 100, BEAT_S)
    assert steady.view.started_at == NOW
    moved = with_heartbeat(steady, look(age_s=105.0), None, NOW - 4000, BEAT_S)
    assert moved.view.started_at == NOW - 4105


def test_ports_stay_until_they_are_looked_for_again() -> None:
    known = with_heartbeat(row(), look(), (80,), NOW, BEAT_S)
    assert with_heartbeat(known, look(), None, NOW, BEAT_S).view.ports == (80,)
    assert with_heartbeat(known, look(), (), NOW, BEAT_S).view.ports == ()


def test_an_end_says_how_and_what_was_left() -> None:
    end = ProcessEnd(reason=EndReason.MEMORY, signal=9, ended_at=0.0, output_bytes=5, detail="5 GB", left=("node",))
    record = ended(process("proc_a"), end, NOW + 7)
    assert (record.ended_at, record.signal, record.reason, record.output_bytes) == (NOW + 7, 9, "memory", 5)
    assert record.detail == "5 GB; what it left running was ended: node"


def test_a_command_is_one_line_in_lists() -> None:
    assert summary("make \\\n  all") == "make \\ all"
    assert len(summary("x" * 1000)) == 120


def test_one_look_does_not_tell_whether_it_works_and_two_do() -> None:
    first = with_heartbeat(row_of(process("proc_a"), NOW), look(), None, NOW, BEAT_S)
    second = with_heartbeat(first, look(), None, NOW + 5, BEAT_S)
    assert (first.view.known, second.view.known) == (False, True)
