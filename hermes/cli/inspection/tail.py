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
from hermes.domain.errors import NotRunningError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from hermes.cli.client import AdminClient
    from hermes.cli.parser import Commands
    from hermes.cli.pid import WatchedProcess
    from hermes.config.home import Home

_POLL_S = 0.25
_RESTARTS = "(the daemon stops or restarts; waiting for it to come back)"
_LEFT_OUT = ("message", "reasoning", "tool.progress", "stream", "daemon")  # the whole answer follows
_NAMES = {
    "run.accepted": "message accepted",
    "run.started": "turn began",
    "run.completed": "answered",
    "run.failed": "turn failed",
    "run.cancelled": "turn stopped",
    "run.interrupted": "interrupted",
    "tool.started": "tool began",
    "tool.completed": "tool ended",
    "approval.request": "asks",
    "question": "asks",
    "answered": "got answer",
    "session.continued": "session moved",
    "session.state": "phase changed",
}
_NAME_WIDTH = max(map(len, _NAMES.values()))
_INDENT = " " * (len("00:00:00  ") + _NAME_WIDTH + 2)
_NOT_SHOWN = ("session_id", "run_id", "platform", "at", "call_id", "tool_calls")
_WHOLE_ID = re.compile(r"\d{8}_\d{6}_([0-9a-f]{8})")
_TURN_WIDTH = 8


def add_commands(commands: Commands) -> None:
    tail = commands.add(
        "tail",
        _tail,
        "Print events of one session or of all, as they happen, also across restarts of the daemon. Ctrl-C ends it.\n"
        "--json prints the events of GET /api/events.",
        examples="  hermes tail\n  hermes tail 20260102_030405_1a2b3c4d --json | jq .event",
        json=True,
    )
    add_session(tail, nargs="?", help="only events of this session")


def _tail(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from urllib.parse import urlencode

    from hermes.cli.client import AdminClient, session_path
    from hermes.cli.pid import watch_process
    from hermes.cli.previous_boot import explaining_last_end
    from hermes.cli.session_lookup import resolve_session
    from hermes.config.home import Home

    home = Home.from_environ(environ)
    client = AdminClient(home.socket)
    with explaining_last_end(home):
        info = client.info()
        path, last_id = "/api/events", ""
        if args.session:
            found = client.get(session_path(resolve_session(client, args.session)), tail=0)
            path += f"?{urlencode({'session_id': found['session']['id']})}"
        while True:
            with watch_process(info["pid"]) as process:
                last_id = _follow(client, path, last_id, json_lines=args.json)
                info = _await_daemon(client, home, process)


def _follow(client: AdminClient, path: str, last_id: str, *, json_lines: bool) -> str:
    """Print events after `last_id` until the connection ends. Return the id of the last one."""
    from hermes.cli.client import LostError

    with suppress(LostError):
        for event in client.stream(path, last_id):
            last_id, fields = event.id, json.loads(event.data)
            if json_lines:
                print(json.dumps({"event": event.name, **fields}, ensure_ascii=False), flush=True)
            elif not is_left_out(event.name):
                print_text(event_line(event.name, fields), indent=_INDENT)
    return last_id


def is_left_out(event: str) -> bool:
    return event in _LEFT_OUT or event.partition(".")[0] in _LEFT_OUT


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
        print_text(_RESTARTS, file=sys.stderr)  # a short absence: live events may have been missed
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
    name = _NAMES.get(event, re.sub("[._]", " ", event))
    rest = (_worded(each, value) for each, value in fields.items() if each not in _NOT_SHOWN)
    detail = one_line(" ".join(filter(None, [_short(fields.get("session_id", "")), *rest])))
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
_DEFAULTS = {"attempt": 1, "finish_reason": "stop"}
_WORDS: dict[str, Callable[[Any], str]] = {
    "usage": lambda usage: f"({count(usage['prompt_tokens'], 'token')} in, {usage['completion_tokens']} out)",
    "error": lambda error: f"({error['code']}) {shortened(error['message'])}",
    "turn_id": lambda turn: f"turn {turn[:_TURN_WIDTH]}",
    "message_turn_id": lambda turn: f"with {turn[:_TURN_WIDTH]}",
    "successor": lambda session: f"to {_short(session)}",
    "took_s": lambda took: f"in {duration(took)}",
    "choices": lambda choices: f"[{', '.join(choices)}]",
    "end": lambda end: f"with {shortened(end)}",
    **dict.fromkeys(("name", "outcome", "phase", "process_id"), str),
    **dict.fromkeys(("text", "output", "question", "summary", "answer", "command"), _quoted),
    **dict.fromkeys(("reason", "problem", "verdict"), _in_parentheses),
}
