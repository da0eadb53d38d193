"""The short form of the matrix: the openai package of the development environment, in both modes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.clients.driver_process import DriverProcess
from tests.clients.matrix import daemon_with_model
from tests.clients.scenarios import SCENARIOS, Stage
from tests.support.client_model import ClientModel
from tests.support.daemon_process import DaemonProcess

pytestmark = pytest.mark.timeout(180)
COMMAND = [sys.executable, "-m", "tests.clients.drivers.openai_python"]
MODES = ("chat", "responses")
TO_COME = {"same-name", "client-tools", "approval", "picture"}
CELLS = [(mode, name) for mode in MODES for name in SCENARIOS if name not in TO_COME]


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[DaemonProcess, ClientModel]]:
    with daemon_with_model() as running:
        yield running


@pytest.fixture(scope="module")
def drivers(server: tuple[DaemonProcess, ClientModel]) -> Iterator[dict[str, DriverProcess]]:
    daemon, _ = server
    address = (f"{daemon.address}/v1", daemon.key)
    with ExitStack() as stack:
        yield {mode: stack.enter_context(DriverProcess([*COMMAND, mode, *address])) for mode in MODES}


@pytest.mark.parametrize(("mode", "scenario"), CELLS)
def test_scenario_passes(
    server: tuple[DaemonProcess, ClientModel],
    drivers: dict[str, DriverProcess],
    tmp_path: Path,
    mode: str,
    scenario: str,
) -> None:
    daemon, model = server
    name = f"{mode}-{scenario}"
    stage = Stage(name=name, daemon=daemon, model=model, driver=drivers[mode], folder=tmp_path)
    try:
        SCENARIOS[scenario](stage)
    finally:
        model.release()
