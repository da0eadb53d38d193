"""`hermes ps --processes`, `log` and `kill`: background processes of all sessions.

A process is named by its id, or by the first characters of the id or of the part after `proc_`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import asks_daemon, only_match, path_of
from hermes.cli.output import ago, duration, one_line, print_json, print_table, print_text, printable, shortened, size
from hermes.cli.parser import positive
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.answered import Answer
    from hermes.cli.client import AdminClient
    from hermes.cli.parser import Commands

_PREFIX = "proc_"
_ID = "proc_0123456789ab"
_LOG_BYTES = 20_000
_PART_BYTES = 500_000


def add_commands(commands: Commands) -> None:
    log = commands.add(
        "log",
        _log,
        "Print the output of a background process. At least the last 10 MB are kept, for an hour after the "
        "process has ended.",
        examples=f"  hermes log {_ID}\n  hermes log 0123 --all > output.txt",
        json=True,
    )
    which = log.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="print all output that is kept, not only the end")
    which.add_argument(
        "--bytes",
        type=positive,
        default=_LOG_BYTES,
        metavar="N",
        help=f"how many bytes of the end to print (default: {_LOG_BYTES})",
    )
    kill = commands.add(
        "kill",
        _kill,
        "End a background process and everything that it started. `hermes ps --processes` lists them.",
        examples=f"  hermes kill {_ID}\n  hermes kill 0123",
        json=True,
    )
    for parser in (log, kill):
        parser.add_argument(
            "id", metavar="PROCESS", help="process id such as proc_0123456789ab, or its first characters"
        )


def show_processes(args: argparse.Namespace, client: AdminClient, *, resets: bool) -> int:
    """Print processes: the running ones first, then the last ended. Those named on the command line are explained.

    `resets` tells whether automatic resets are on, so that a process can delay one.
    """
    processes = _listed(client)
    if args.processes_named:
        processes = [_find(processes, name) for name in args.processes_named]
    elif args.running:
        processes = [process for process in processes if process["running"]]
    processes = processes[: args.limit]
    if args.json:
        print_json({"processes": processes})
    elif not processes:
        print("There are no background processes.")
    elif args.processes_named:
        for process in processes:
            print_text(f"{process['id']}: {one_line(process['explanation'])}", indent="  ")
    else:
        _print(processes, resets=resets)
    return 0


def _listed(client: AdminClient) -> list[dict[str, Any]]:
    processes = client.get("/api/processes")["processes"]
    ended = sorted(
        (each for each in processes if not each["running"]), key=lambda each: each["ended_at"], reverse=True
    )
    return [*(each for each in processes if each["running"]), *ended]


def _print(processes: list[dict[str, Any]], *, resets: bool) -> None:
    rows = [
        [
            process["id"],
            "running" if process["running"] else _ended(process),
            str(process["pid"]),
            duration(process["age_s"]),
            ago(process["active_at"] if process["running"] else process["ended_at"]),
            f"{process['cpu_s']:.1f} s",
            size(process["memory_bytes"]) if process["running"] else "-",
            ", ".join(map(str, process["ports"])) or "-",
            *(["waits" if process["blocks_reset"] else "-"] if resets else []),
            process["session_id"],
            shortened(process["command"]),
        ]
        for process in processes
    ]
    columns = ["PROCESS", "STATE", "PID", "AGE", "ACTIVE", "CPU", "MEMORY", "PORTS", "RESET", "SESSION", "COMMAND"]
    drop = ["CPU", "MEMORY", "PID", "PORTS", "SESSION", "RESET", "ACTIVE"]
    if not resets:
        columns.remove("RESET")
        drop.remove("RESET")
    print_table(columns, rows, drop=drop, numbers=("PID", "AGE", "ACTIVE", "CPU", "MEMORY"))
    if sys.stdout.isatty():
        print_text("`hermes ps PROCESS` explains one, `hermes log PROCESS` prints its output.")


def _ended(process: Mapping[str, Any]) -> str:
    if process["reason"] not in ("", "exited"):
        return str(process["reason"])
    return f"signal {process['signal']}" if process["signal"] is not None else f"exit {process['exit_code']}"


def _find(processes: list[dict[str, Any]], given: str) -> dict[str, Any]:
    prefix = _PREFIX + given.removeprefix(_PREFIX)
    found = {each["id"]: each for each in processes if each["id"].startswith(prefix) and prefix != _PREFIX}
    name = only_match([*found], given)
    if name is None:
        raise HermesError(f"there is no background process {one_line(given)}; `hermes ps --processes` lists them")
    return found[name]


# ---------------------------------------------------------------- one process


def _log(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect

    client = connect(environ)
    path = path_of("api", "processes", _find(_listed(client), args.id)["id"], "log")
    part = client.get(path, offset=0, limit=_PART_BYTES) if args.all else client.get(path, limit=args.bytes)
    if args.json:
        print_json(part)
        return 0
    if part["offset"]:
        gone = f", bytes before {part['kept_from']} are no longer kept" if part["kept_from"] else ""
        more = "" if args.all else "; --all prints everything that is kept"
        print_text(f"(from byte {part['offset']} of {part['total_bytes']}{gone}{more})", file=sys.stderr)
    _write_output(part["text"])
    while args.all and part["next_offset"] < part["total_bytes"]:
        part = client.get(path, offset=part["next_offset"], limit=_PART_BYTES)
        _write_output(part["text"])
    return 0


def _write_output(text: str) -> None:
    sys.stdout.write(printable(text) if sys.stdout.isatty() else text)


@asks_daemon
def _kill(args: argparse.Namespace, client: AdminClient) -> Answer:
    answer = client.post(path_of("api", "processes", _find(_listed(client), args.id)["id"], "kill"))
    process = answer["process"]
    if process["running"]:
        return answer, f"{process['id']} was signalled and is still running."
    return answer, f"{process['id']} was ended: {process['explanation']}"
