"""Run scenarios with clients and collect the outcome of each cell."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from tests.clients.catalog import Client
from tests.clients.driver_process import ClientLimit, DriverError, DriverProcess
from tests.clients.scenarios import SCENARIOS, Stage
from tests.support.client_model import ClientModel
from tests.support.daemon_process import DaemonProcess
from tests.support.free_port import free_port


class Outcome(Enum):
    OK = "ok"
    FAILED = "failed"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    client: str
    mode: str
    scenario: str
    outcome: Outcome
    detail: str
    seconds: float
    date: str  # UTC


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One mode of one client."""

    client: Client
    mode: str
    command: list[str]  # starts its driver


@contextmanager
def daemon_with_model() -> Iterator[tuple[DaemonProcess, ClientModel]]:
    """A daemon on a port that it keeps over restarts, with a scripted model."""
    with ClientModel() as model:
        config = model.config + "shutdown: {drain_s: 0.2}\n"
        with DaemonProcess(config=config, environ={"HERMES_API_PORT": str(free_port())}) as daemon:
            yield daemon, model
        model.release()


def run_row(row: Row, scenarios: Iterable[str], report: Callable[[Cell], None]) -> None:
    """Run the scenarios of one mode on one daemon, and report each cell as it ends."""
    with daemon_with_model() as (daemon, model):
        for scenario in scenarios:
            report(run_cell(row, scenario, daemon, model))


def run_cell(row: Row, scenario: str, daemon: DaemonProcess, model: ClientModel) -> Cell:
    """Run one scenario with a new process of the client."""
    started = time.monotonic()
    try:
        play(row, scenario, daemon, model)
        outcome, detail = Outcome.OK, ""
    except ClientLimit as limit:
        outcome, detail = Outcome.LIMIT, str(limit)
    except (AssertionError, DriverError) as error:
        outcome, detail = Outcome.FAILED, str(error)
    except Exception as error:  # noqa: BLE001 - one broken cell must not end the run
        outcome, detail = Outcome.FAILED, f"{type(error).__name__}: {error}"
    finally:
        model.release()
    return Cell(
        client=row.client.key,
        mode=row.mode,
        scenario=scenario,
        outcome=outcome,
        detail=detail[:1000],
        seconds=round(time.monotonic() - started, 1),
        date=datetime.now(UTC).date().isoformat(),
    )


def play(row: Row, scenario: str, daemon: DaemonProcess, model: ClientModel) -> None:
    """Run one scenario; an exception says what went wrong."""
    arguments = (row.mode, f"{daemon.address}/v1", daemon.key)
    with tempfile.TemporaryDirectory(prefix="stage-") as folder, DriverProcess(row.command, *arguments) as driver:
        stage = Stage(name=scenario, daemon=daemon, model=model, driver=driver, folder=Path(folder))
        SCENARIOS[scenario](stage)
