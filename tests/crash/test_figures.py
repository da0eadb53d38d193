"""The figures of a real daemon reach the judge, and one that is too high does not pass."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.crash import figures
from tests.support.daemon_process import DaemonProcess
from tests.support.judge import History, Sample, judge
from tests.support.waiting import eventually

KINDS = ["memory in MB", "threads", "descriptors", "readers of the store"]


@pytest.fixture
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess(config="api: {max_connections: 1000, max_connections_per_peer: 1000}\n") as daemon:
        yield daemon


def taken(daemon: DaemonProcess) -> list[Sample]:
    return [*figures.at_the_end_of_a_life(daemon), *figures.at_the_start_of_a_life(daemon)]


def test_descriptors_that_are_not_given_back_are_noticed(daemon: DaemonProcess) -> None:
    before = taken(daemon)
    assert [each.what for each in before] == KINDS
    assert all(each.value > 0 for each in before[:3])  # nobody needs to read just now
    assert judge(History(before)) == []
    host, port = daemon.address.removeprefix("http://").split(":")
    with ExitStack() as flood:
        for _ in range(figures.DESCRIPTORS):
            flood.enter_context(socket.create_connection((host, int(port))))
        found = eventually(lambda: judge(History(taken(daemon))))
        assert [each.rule for each in found] == ["what grows is bounded"]
        assert f"more than {figures.DESCRIPTORS}" in str(found[0])
    eventually(lambda: judge(History(taken(daemon))) == [])
