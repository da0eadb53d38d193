"""One daemon for the tests of the dashboard, and visitors of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.web.visitor import Visitor


@pytest.fixture(scope="module")
def daemon() -> Iterator[DaemonProcess]:
    with DaemonProcess() as daemon:
        yield daemon


@pytest.fixture
def stranger(daemon: DaemonProcess) -> Visitor:
    return Visitor(daemon.address)


@pytest.fixture
def visitor(daemon: DaemonProcess) -> Visitor:
    visitor = Visitor(daemon.address)
    visitor.log_in(daemon)
    visitor.get("/")
    return visitor
