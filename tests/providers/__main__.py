"""`make providers`: model endpoints that other people wrote, each in an exact version and unmodified.

They are installed into the user's cache directory, or the one that HERMES_TEST_CLIENTS names. The results of all runs
are kept there; `--page` writes docs/providers.md from them. One that cannot be installed is skipped with the reason.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path

from tests.clients.install import CannotInstall, cache_folder
from tests.clients.matrix import Cell, Outcome
from tests.clients.page import render
from tests.clients.results import as_json, merge
from tests.providers.backends import BACKENDS, KEY, Backend
from tests.providers.catalog import IMPLEMENTATIONS, PROTOCOLS
from tests.providers.moves import Limit
from tests.providers.page import PAGE, TEXTS
from tests.providers.scenarios import NOTE, SCENARIOS, Stage
from tests.support.daemon_process import DaemonProcess


def main() -> int:
    options = _options()
    cells: list[Cell] = []

    def report(cell: Cell) -> None:
        cells.append(cell)
        print(f"{cell.client} {cell.mode} {cell.scenario}: {cell.outcome.value} {cell.detail}", file=sys.stderr)

    for key in options.implementation or BACKENDS:
        try:
            with tempfile.TemporaryDirectory() as folder, BACKENDS[key](Path(folder)) as backend:
                for protocol in options.protocol or PROTOCOLS:
                    run_protocol(backend, protocol, options.scenario or SCENARIOS, report)
        except CannotInstall as reason:
            print(f"{key} was skipped, it could not be installed: {reason}", file=sys.stderr)
    kept = merge(cache_folder() / "providers.json", cells)
    if options.page:
        PAGE.write_text(render(IMPLEMENTATIONS, kept, TEXTS), encoding="utf-8")
    if options.json:
        print(json.dumps([as_json(cell) for cell in cells], indent=2))
    return int(any(cell.outcome is Outcome.FAILED for cell in cells))


def run_protocol(backend: Backend, protocol: str, scenarios: Iterable[str], report: Callable[[Cell], None]) -> None:
    """Run the scenarios on one daemon, and report each cell as it ends."""
    with tempfile.TemporaryDirectory(prefix="cwd-") as folder:
        for name in ("note.txt", "other.txt"):
            (Path(folder) / name).write_text(f"{NOTE}\n", encoding="utf-8")
        tools = "[read_file]" if backend.is_scripted else "[]"
        config = (
            f"model: {{{backend.model(protocol)}, api_key_env: A_KEY, idle_timeout_s: 120}}\n"
            f"tools: {{api: {tools}, default: {tools}}}\nterminal: {{cwd: {folder}}}\n"
            "compression: {enabled: false}\n"
        )
        with DaemonProcess(config=config, environ={"A_KEY": KEY}) as daemon:
            stage = Stage(daemon=daemon, backend=backend, protocol=protocol)
            for name in scenarios:
                report(_run(stage, name))


def _run(stage: Stage, name: str) -> Cell:
    started, detail = time.monotonic(), ""
    try:
        stage.backend.patiently(lambda: SCENARIOS[name](stage))
        outcome = Outcome.OK
    except Limit as limit:
        outcome, detail = Outcome.LIMIT, str(limit)
    except Exception as error:  # noqa: BLE001 - one broken cell must not end the run
        outcome, detail = Outcome.FAILED, f"{type(error).__name__}: {error}"
    return Cell(
        client=stage.backend.client.key,
        mode=stage.protocol,
        scenario=name,
        outcome=outcome,
        detail=detail[:1000],
        seconds=round(time.monotonic() - started, 1),
        date=datetime.now(UTC).date().isoformat(),
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.providers", description=__doc__)
    parser.add_argument("implementation", nargs="*", choices=[*BACKENDS, []], help=", ".join(BACKENDS))
    parser.add_argument("--protocol", action="append", choices=PROTOCOLS, help="only this protocol")
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="only this scenario")
    parser.add_argument("--json", action="store_true", help="print the cells of this run as JSON")
    parser.add_argument("--page", action="store_true", help="write docs/providers.md from the results of all runs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
