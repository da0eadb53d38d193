"""`make clients`: the matrix of clients that other people wrote, each in an exact version and unmodified.

Clients are installed into the user's cache directory, or the one that HERMES_TEST_CLIENTS names. The results of all
runs are kept there; `--page` writes docs/clients.md from them. Without names, all clients run except the large ones.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.clients.catalog import CLIENTS, Client
from tests.clients.install import CannotInstall, cache_folder, installed
from tests.clients.matrix import Cell, Outcome, Row, run_row
from tests.clients.page import render
from tests.clients.results import as_json, merge
from tests.clients.scenarios import SCENARIOS

PAGE = Path(__file__).parents[2] / "docs" / "clients.md"


def main() -> int:
    options = _options()
    try:
        cells = _run(options)
    except CannotInstall as reason:
        print(f"A client could not be installed: {reason}", file=sys.stderr)
        return 2
    kept = merge(cache_folder() / "results.json", cells)
    if options.page:
        PAGE.write_text(render(CLIENTS, kept), encoding="utf-8")
    if options.json:
        print(json.dumps([as_json(cell) for cell in cells], indent=2))
    return int(any(cell.outcome is Outcome.FAILED for cell in cells))


def _run(options: argparse.Namespace) -> list[Cell]:
    cells: list[Cell] = []

    def report(cell: Cell) -> None:
        cells.append(cell)
        print(f"{cell.client} {cell.mode} {cell.scenario}: {cell.outcome.value} {cell.detail}", file=sys.stderr)

    for client in _chosen(options):
        command = installed(client)
        for mode in client.modes:
            if not options.mode or mode in options.mode:
                row = Row(client=client, mode=mode, command=command)
                run_row(row, options.scenario or SCENARIOS, report)
    return cells


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.clients", description=__doc__)
    parser.add_argument("client", nargs="*", metavar="CLIENT", help=", ".join(client.key for client in CLIENTS))
    parser.add_argument("--all", action="store_true", help="all clients, also the large ones")
    parser.add_argument("--mode", action="append", help="only this mode of the clients")
    parser.add_argument("--scenario", action="append", choices=SCENARIOS, help="only this scenario")
    parser.add_argument("--json", action="store_true", help="print the cells of this run as JSON")
    parser.add_argument("--page", action="store_true", help="write docs/clients.md from the results of all runs")
    return parser.parse_args()


def _chosen(options: argparse.Namespace) -> list[Client]:
    known = {client.key: client for client in CLIENTS}
    if unknown := [key for key in options.client if key not in known]:
        sys.exit(f"There is no client {unknown[0]!r}. There are: {', '.join(known)}.")
    if options.client:
        return [known[key] for key in options.client]
    return [client for client in CLIENTS if options.all or not client.opt_in]


if __name__ == "__main__":
    sys.exit(main())
