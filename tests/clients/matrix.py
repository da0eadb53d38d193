"""Run scenarios with clients and collect the outcome of each cell."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
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
    with daemon_with_model() as (daemon, model), ExitStack() as stack:
        drivers = Drivers(row, daemon, stack)
        for scenario in scenarios:
            report(run_cell(drivers, scenario, daemon, model))


class Drivers:
    """The driver of a row: one process for all scenarios, and a new one after it has ended."""

    def __init__(self, row: Row, daemon: DaemonProcess, stack: ExitStack) -> None:
        self.row = row
        self._command = [*row.command, row.mode, f"{daemon.address}/v1", daemon.key]
        self._stack = stack
        self._driver: DriverProcess | None = None

    def running(self) -> DriverProcess:
        if self._driver is None or not self._driver.alive:
            self._driver = self._stack.enter_context(DriverProcess(self._command))
        return self._driver


def run_cell(drivers: Drivers, scenario: str, daemon: DaemonProcess, model: ClientModel) -> Cell:
    """Run one scenario."""
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="stage-") as folder:
            driver = drivers.running()
            stage = Stage(name=scenario, daemon=daemon, model=model, driver=driver, folder=Path(folder))
            SCENARIOS[scenario](stage)
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
        client=drivers.row.client.key,
        mode=drivers.row.mode,
        scenario=scenario,
        outcome=outcome,
        detail=detail[:1000],
        seconds=round(time.monotonic() - started, 1),
        date=datetime.now(UTC).date().isoformat(),
    )
