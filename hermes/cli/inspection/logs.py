"""`hermes logs`: print the log of the daemon, and follow it. It reads the file, so it works without a daemon."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from hermes.cli.output import printable
from hermes.cli.parser import add_session, whole
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from hermes.cli.parser import Commands
    from hermes.config.home import Home
    from hermes.domain.read.log_line import LogFilter, LogLine

_LINES = 50
_POLL_S = 0.25
_COLOURS = {"DEBUG": "2", "WARNING": "33", "ERROR": "31"}


def add_commands(commands: Commands) -> None:
    logs = commands.add(
        "logs",
        _logs,
        "Print the log of the daemon; `hermes log ID` prints the output of a background process. Works without a "
        "daemon.",
        examples="  hermes logs\n  hermes logs -f --level warning\n  hermes logs --since 2h --session - --json",
        json=True,
    )
    logs.add_argument("-f", "--follow", action="store_true", help="wait for new lines")
    logs.add_argument(
        "-n", "--lines", type=whole, metavar="N", help=f"how many to print (default: {_LINES}, or all with --since)"
    )
    levels = ("debug", "info", "warning", "error")
    logs.add_argument("--level", type=str.lower, choices=levels, default="debug", help="lowest level to print")
    logs.add_argument("--since", type=_time, metavar="TIME", help="only newer lines: 10m, 2h, 3d, 2026-01-02T03:04")
    add_session(logs, "--session", help="only lines that name this session")


def _time(text: str) -> float:
    from hermes.domain.read.log_line import parse_since

    try:
        return parse_since(text, time.time())
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _logs(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home
    from hermes.domain.read.log_line import LogFilter, entries

    home = Home.from_environ(environ)
    wanted = LogFilter(level=args.level.upper(), since=args.since or 0.0, session=_session(args, environ))
    file = home.log_dir / "hermes.log"
    if not file.exists() and not args.follow:
        raise HermesError(f"there is no log at {file}: no `hermes daemon` ran here, or log.file is false")
    number = args.lines if args.lines is not None else None if args.since else _LINES
    lines, end = _stored_lines(home)
    for line in deque(filter(wanted.admits, entries(lines)), maxlen=number):
        _print(line, as_json=args.json)
    if args.follow:
        _follow(file, end, wanted, as_json=args.json)
    return 0


def _session(args: argparse.Namespace, environ: Mapping[str, str]) -> str:
    if not args.resume:
        return ""
    from hermes.cli.session_lookup import open_records, resolve_id

    with open_records(environ, quietly=True) as records:
        return resolve_id(records, args.resume)


def _stored_lines(home: Home) -> tuple[list[str], int]:
    """Return the lines of all log files, the oldest first, and the size of the current file."""
    names = sorted(home.log_dir.glob("hermes.log.*"), key=lambda path: -int(path.suffix[1:] or 0))
    lines: list[str] = []
    end = 0
    for path in (*names, home.log_dir / "hermes.log"):
        with suppress(FileNotFoundError):  # rotated meanwhile
            text = path.read_bytes()
            lines += text.decode("utf-8", "replace").splitlines()
            end = len(text)
    return lines, end


def _follow(file: Path, position: int, wanted: LogFilter, *, as_json: bool) -> None:
    """Print new entries until Ctrl-C. An entry is complete when the next one begins, or nothing more comes."""
    from hermes.domain.read.log_line import joined, parse_line

    current: LogLine | None = None
    for raw in _new_lines(file, position):
        parsed = None if raw is None else parse_line(raw)
        if raw is not None and parsed is None and current is not None:
            current = joined(current, raw)
            continue
        if current is not None and wanted.admits(current):
            _print(current, as_json=as_json)
            sys.stdout.flush()
        current = parsed


def _new_lines(file: Path, position: int) -> Iterator[str | None]:
    """Yield lines as they are written, across rotations; None when there are none at the moment."""
    inode, rest = _inode(file), b""
    while True:
        found, data = _inode(file), b""
        if found != inode:
            inode, position, rest = found, 0, b""
        with suppress(FileNotFoundError), file.open("rb") as stream:
            stream.seek(position)
            data = stream.read()
        position += len(data)
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace")
        if not data:
            yield None
            time.sleep(_POLL_S)


def _inode(file: Path) -> int:
    try:
        return file.stat().st_ino
    except FileNotFoundError:
        return 0


def _print(line: LogLine, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(line.as_json(), ensure_ascii=False))
        return
    text = printable(line.raw)
    colour = _COLOURS.get(line.level) if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else None
    print(f"\033[{colour}m{text}\033[0m" if colour else text)
