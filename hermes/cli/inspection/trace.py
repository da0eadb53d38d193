"""`hermes trace`: path of each message, from its id on the platform to the messages sent in return.

It prints one line per message with its gaps, and the steps of a single message, or of all with --steps. It works
without a daemon.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import reads_records
from hermes.cli.output import count, duration, moment, one_line, print_table, print_text, shortened
from hermes.cli.parser import SESSION_COMPLETION, positive, session_id
from hermes.domain.errors import UnknownSessionError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.answered import Answer
    from hermes.cli.parser import Commands
    from hermes.cli.session_lookup import Records

_MESSAGES = 20
_LIKE_A_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,127}")
_SHORT = 8  # characters of a turn id, as other commands print it
_KEY_WIDTH = 24
_DIGEST = 16  # with its prefix
_INDENT = " " * 24


def add_commands(commands: Commands) -> None:
    trace = commands.add(
        "trace",
        _trace,
        "Trace a message, or each message of a session, from arrival to delivery. Gaps are red.",
        examples="  hermes trace -\n  hermes trace telegram:4242:1000\n  hermes trace 1f2e3d4c --json\n"
        "  hermes trace 20260102_030405_1a2b3c4d --limit 5 --steps",
        json=True,
    )
    what = trace.add_argument(
        "what",
        type=session_id,
        metavar="MESSAGE|SESSION",
        help="id of a message on its platform (telegram:BOT:UPDATE), an Idempotency-Key, or the id of a turn, run, "
        "response or sent message; or a session id or its first characters; - is the last active session",
    )
    setattr(what, "complete", SESSION_COMPLETION)  # noqa: B010 - read by shtab, unknown to argparse
    trace.add_argument(
        "--limit",
        type=positive,
        default=_MESSAGES,
        metavar="N",
        help=f"how many messages to list (default: {_MESSAGES})",
    )
    trace.add_argument("--steps", action="store_true", help="show the steps of every message")


@reads_records
def _trace(args: argparse.Namespace, records: Records) -> Answer:
    answer = _found(records, args.what, args.limit)
    if not answer["messages"]:
        return answer, "There are no messages in this session yet."
    return answer, lambda: _print(answer["messages"], args)


def _print(lines: list[dict[str, Any]], args: argparse.Namespace) -> None:
    _print_lines(lines, args.what)
    show = _print_steps if args.steps or len(lines) == 1 else _print_gaps
    for line in lines:
        show({**line, "inbound": line["inbound"] and _message(line, args.what)})


def _found(records: Records, given: str, limit: int) -> dict[str, Any]:
    from hermes.cli.client import AdminError
    from hermes.cli.session_lookup import LAST, resolve_id

    if given == LAST:
        return records.trace(resolve_id(records, LAST), limit)
    try:
        return records.trace(given, limit)
    except (UnknownSessionError, AdminError) as error:
        unknown = isinstance(error, UnknownSessionError) or (error.status == 404 and not error.is_unknown_address)
        if not unknown or not _LIKE_A_SESSION.fullmatch(given) or (session := resolve_id(records, given)) == given:
            raise
    return records.trace(session, limit)


def _message(line: Mapping[str, Any], given: str) -> str:
    """Return the id of the message at its source. An Idempotency-Key is stored as a digest: show `given`."""
    from hermes.domain.ids import inbound_of

    inbound = str(line["inbound"] or "")
    if not inbound:
        return str(line["platform"])
    if inbound == inbound_of(given):
        return given
    return f"{inbound[:_DIGEST]}…" if re.fullmatch(r"api:[0-9a-f]{64}", inbound) else inbound


def _print_lines(lines: list[dict[str, Any]], given: str) -> None:
    short = sys.stdout.isatty()
    rows = [
        [
            moment(line["at"]),
            shortened(key, _KEY_WIDTH) if short and len(key) > _KEY_WIDTH else key,
            line["turn"][:_SHORT] if short else line["turn"],
            line["state"],
            "-" if line["took_s"] is None else duration(line["took_s"]),
            str(line["attempts"]),
            str(line["model_calls"]),
            str(line["tool_calls"]),
            ", ".join(line["sent"]) or "-",
            _gaps(line) or "-",
        ]
        for line, key in ((line, _message(line, given)) for line in lines)
    ]
    columns = ["ACCEPTED", "MESSAGE", "TURN", "STATE", "TOOK", "ATTEMPTS", "MODEL", "TOOLS", "SENT", "GAPS"]
    numbers = ("TOOK", "ATTEMPTS", "MODEL", "TOOLS")
    print_table(columns, rows, drop=("TOOLS", "MODEL", "ATTEMPTS", "SENT", "MESSAGE"), alarm="GAPS", numbers=numbers)


def _gaps(line: Mapping[str, Any]) -> str:
    """Return the gaps of a message in one text. Equal ones are counted."""
    counted = Counter(line["problems"])
    return "; ".join(f"{number} x {gap}" if number > 1 else gap for gap, number in counted.items())


def _print_gaps(line: Mapping[str, Any]) -> None:
    """Print the gaps in full: on a terminal the table may have cut them off."""
    if line["problems"] and sys.stdout.isatty():
        print_text(f"{line['turn'][:_SHORT]}: {one_line(_gaps(line))}", indent=_INDENT[:10], alarm=True)


def step_lines(line: Mapping[str, Any]) -> list[str]:
    """Return a message of a trace in words: its turn, then its steps."""
    steps = [f"{text}{gap}" for text, gap in map(_step, line["steps"])]
    return [_turn(line), *steps]


def _print_steps(line: Mapping[str, Any]) -> None:
    print()
    print_text(_turn(line))
    for text, gap in map(_step, line["steps"]):
        print_text(f"{text}{gap}", indent=_INDENT, alarm=bool(gap))


def _turn(line: Mapping[str, Any]) -> str:
    came = f", as {line['inbound']}" if line["inbound"] else ""
    into = f", part of turn {line['into']}" if line["into"] else ""
    counted = f"{count(line['attempts'], 'attempt')}, {count(line['interruptions'], 'interruption')}"
    return one_line(f"Turn {line['turn']} of {line['session']}{into}, by {line['platform']}{came}: {counted}.")


def _step(step: Mapping[str, Any]) -> tuple[str, str]:
    """Return a step in words, and its gap."""
    took = "" if step["took_s"] is None else duration(step["took_s"])
    text = " ".join(filter(None, (step["what"], one_line(step["detail"]))))
    gap = f"  <- {one_line(step['problem'])}" if step["problem"] else ""
    return f"  {_clock(step['at'])}  {took:>6}  {text}", gap


def _clock(at: float) -> str:
    return f"{time.strftime('%H:%M:%S', time.localtime(at))}.{int(at % 1 * 1000):03}"
