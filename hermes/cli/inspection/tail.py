"""`hermes tail`: print events as they happen, one per line."""

from __future__ import annotations

import json
import re
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hermes.cli.output import count, duration, one_line, print_text, shortened
from hermes.cli.parser import add_session
from hermes.domain.errors import HermesError, NotRunningError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from hermes.cli.client import AdminClient
    from hermes.cli.parser import Commands
    from hermes.cli.pid import WatchedProcess
    from hermes.config.home import Home

_POLL_S = 0.25
_RESTARTS = "(the daemon stops or restarts; waiting for it to come back)"
_LEFT_OUT = ("text_delta", "text_reset", "call_progress", "end")  # the whole answer follows
_NAMES = {
    "turn_accepted": "message accepted",
    "turn_began": "turn began",
    "turn_answered": "answered",
    "turn_gave_up": "turn failed",
    "call_began": "tool began",
    "call_ended": "tool ended",
    "call_asked": "asks",
    "call_answered": "got answer",
    "session_moved": "session moved",
    "phase_changed": "phase changed",
    "process_started": "process started",
    "process_ended": "process ended",
    "actor_failed": "actor failed",
}
_NAME_WIDTH = max(map(len, _NAMES.values()))
_INDENT = " " * (len("00:00:00  ") + _NAME_WIDTH + 2)
_WHOLE_ID = re.compile(r"\d{8}_\d{6}_([0-9a-f]{8})")
_TURN_WIDTH = 8


def add_commands(commands: Commands) -> None:
    tail = commands.add(
        "tail",
        _tail,
        "Print events of one session or of all, as they happen, also across restarts of the daemon. Ctrl-C ends it.\n"
        "--json prints whole answers and their deltas.",
        examples="  hermes tail\n  hermes tail 20260102_030405_1a2b3c4d --json | jq .event",
        json=True,
    )
    add_session(tail, nargs="?", help="only events of this session")


def _tail(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from urllib.parse import urlencode

    from hermes.cli.client import AdminClient
    from hermes.cli.pid import watch_process
    from hermes.cli.previous_boot import explaining_last_end
    from hermes.cli.session_lookup import resolve_session
    from hermes.config.home import Home

    home = Home.from_environ(environ)
    client = AdminClient(home.socket)
    with explaining_last_end(home):
        info = client.info()
        path = (
            f"/events?{urlencode({'session': resolve_session(client, args.session)})}" if args.session else "/events"
        )
        while True:
            with watch_process(info["pid"]) as process:
                _follow(client, path, json_lines=args.json)
                info = _await_daemon(client, home, process)


def _follow(client: AdminClient, path: str, *, json_lines: bool) -> None:
    """Print events until the connection ends."""
    from hermes.cli.client import LostError

    with suppress(LostError):
        for raw in client.stream(path):
            event, fields = raw.name, json.loads(raw.data)
            if json_lines:
                print(json.dumps({"event": event, **fields}, ensure_ascii=False), flush=True)
            elif event not in _LEFT_OUT:
                print_text(event_line(event, fields), indent=_INDENT)
            if event == "end":
                raise HermesError(
                    "events arrived faster than they were read and some were lost; run `hermes tail` again"
                )


def _await_daemon(client: AdminClient, home: Home, process: WatchedProcess | None) -> dict[str, Any]:
    """Wait for the next daemon and return its /info. Raises NotRunningError after a clean stop without a restart.

    A restart keeps the process. After a kill this waits as well, to follow the next daemon.
    """
    from hermes.cli.next_boot import current_boot
    from hermes.cli.pid import has_ended

    printed = ""
    while current_boot(client) is None:
        notice = _RESTARTS if not has_ended(process) else _absence(home)
        if notice != printed:
            printed = notice
            print_text(notice, file=sys.stderr)
        time.sleep(_POLL_S)
    if not printed:
        print_text(_RESTARTS, file=sys.stderr)  # a short absence: events may have been missed
    print_text("(the daemon is back)", file=sys.stderr)
    return client.info()


def _absence(home: Home) -> str:
    """Return why to wait for a daemon though its process has ended. Raises NotRunningError if none is expected."""
    from hermes.cli.previous_boot import last_end
    from hermes.config.home import is_free

    if not is_free(home):
        return "(another daemon is starting; waiting for it)"
    if not (how := last_end(home)):
        raise NotRunningError("the daemon stopped")
    return f"(the daemon stopped: {how}. Waiting for a daemon to start; Ctrl-C ends this)"


def event_line(event: str, fields: Mapping[str, Any]) -> str:
    clock = time.strftime("%H:%M:%S", time.localtime(fields.get("at")))  # None is now
    name = _NAMES.get(event, event.replace("_", " "))
    rest = (_worded(each, value) for each, value in fields.items() if each not in ("session", "at"))
    detail = one_line(" ".join(filter(None, [_short(fields.get("session", "")), *rest])))
    return f"{clock}  {name:<{_NAME_WIDTH}}  {detail}"


def _short(session: str) -> str:
    """Return the random part of a session id; every command accepts it in place of the id."""
    whole = _WHOLE_ID.fullmatch(session)
    return whole[1] if whole else session


def _worded(name: str, value: Any) -> str:
    if value in (None, "", [], False) or _DEFAULTS.get(name, _NOTHING) == value:
        return ""
    words = _WORDS.get(name)
    return words(value) if words else f"{name.replace('_', ' ')} {value}"


def _quoted(text: str) -> str:
    return f'"{shortened(text)}"'


def _in_parentheses(text: str) -> str:
    return f"({shortened(text)})"


_NOTHING = object()
_DEFAULTS = {"position": 0, "attempt": 1, "finish_reason": "stop"}
_WORDS: dict[str, Callable[[Any], str]] = {
    "usage": lambda usage: f"({count(usage['prompt_tokens'], 'token')} in, {usage['completion_tokens']} out)",
    "failure": lambda failure: f"({failure['kind']}) {shortened(failure['message'])}",
    "turn": lambda turn: f"turn {turn[:_TURN_WIDTH]}",
    "message": lambda turn: f"with {turn[:_TURN_WIDTH]}",
    "successor": lambda session: f"to {_short(session)}",
    "took_s": lambda took: f"in {duration(took)}",
    "choices": lambda choices: f"[{', '.join(choices)}]",
    "approval": lambda _: "(needs permission)",
    "call": lambda _: "",  # the name is enough
    "end": lambda end: f"with {shortened(end)}",
    **dict.fromkeys(("name", "outcome", "phase", "process"), str),
    **dict.fromkeys(("text", "question", "summary", "answer", "command"), _quoted),
    **dict.fromkeys(("reason", "problem", "verdict"), _in_parentheses),
}
