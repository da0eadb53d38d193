"""The short form of the matrix: the openai package of the development environment, in both modes."""

from __future__ import annotations

import json
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


@pytest.mark.parametrize("scenario", SCENARIOS)
@pytest.mark.parametrize("mode", MODES)
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


def test_answer_to_a_question_that_is_sent_back_as_a_reference(
    server: tuple[DaemonProcess, ClientModel], tmp_path: Path
) -> None:
    daemon, _ = server
    folder = tmp_path / "folder"
    folder.mkdir()
    text = f"[[call terminal {json.dumps({'command': f'rm -rf {folder}'})}]]"
    first = daemon.request("POST", "/v1/responses", {"input": text}).json()
    references = [{"type": "item_reference", "id": item["id"]} for item in first["output"]]
    history = [{"role": "user", "content": text}, *references, {"role": "user", "content": "yes"}]
    second = daemon.request("POST", "/v1/responses", {"input": history}).json()
    assert second["hermes"]["session_id"] == first["hermes"]["session_id"]
    assert not folder.exists()
