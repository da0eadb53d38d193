"""Start of the terminal interface: which daemon it talks to, which session it opens, where the agent works."""

from __future__ import annotations

import os
import sys
import time
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from hermes.cli.chat.child_daemon import ChildDaemon
    from hermes.config.home import Home


def is_possible(environ: Mapping[str, str]) -> bool:
    """Return whether the terminal can show it."""
    dumb = environ.get("TERM", "dumb") in ("", "dumb")
    return not dumb and sys.stdin.isatty() and sys.stdout.isatty()


def run_interface(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home

    for name in ("COLUMNS", "LINES"):  # out of date after the first resize
        os.environ.pop(name, None)
    home = Home.from_environ(environ)
    with own_daemon(home, environ, shows_log=False) as child:
        from hermes.tui.chat.app import ChatApp, ChatOptions

        session, find = (_new_session(), "") if args.resume is None else _resolved(home, args.resume, child)
        workdir, ask = (None, None) if args.resume is not None else _workdir(home, trust=args.trust)
        options = ChatOptions(
            data_dir=home.data_dir,
            session=session,
            workdir=workdir,
            ask_directory=ask,
            yolo=args.yolo,
            find=find,
            own_daemon=child is not None,
            revive=None if child is None else child.start,
            daemon_problem=str if child is None else child.problem,
        )
        app = ChatApp(options)
        app.run()
        if app.said or args.resume is not None:
            print(f"Continue with: hermes -r {app.link.view.session}")
        return app.return_code or 0


def _new_session() -> str:
    from hermes.system.random_id import new_session_id

    return new_session_id(time.time())


@contextmanager
def own_daemon(home: Home, environ: Mapping[str, str], *, shows_log: bool) -> Iterator[ChildDaemon | None]:
    """Start a daemon in a child process if none runs. It is not waited for."""
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(home.socket))
        except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
            is_there = False
        except OSError:  # it hangs, or the socket cannot be used: the first request tells
            is_there = True
        else:
            is_there = True
    if is_there:
        yield None
        return
    from hermes.cli.chat.child_daemon import ChildDaemon

    with closing(ChildDaemon(environ, shows_log=shows_log)) as child:
        child.start()
        yield child


def _resolved(home: Home, resumed: str, child: ChildDaemon | None) -> tuple[str, str]:
    """Return the id of the session to resume; with words to choose one by, if several titles begin with them.

    An own daemon has to be ready first.
    """
    from hermes.cli.client import AdminClient, session_path
    from hermes.cli.session_lookup import AmbiguousTitleError, resolve_resumed

    client = AdminClient(home.socket)
    if child is not None:
        child.await_ready()
    try:
        found = client.get(session_path(resolve_resumed(client, resumed)), tail=0)
    except AmbiguousTitleError:
        return _new_session(), resumed
    return str(found["session"]["id"]), ""


def _workdir(home: Home, *, trust: bool) -> tuple[str | None, Path | None]:
    """Return where the agent works, and the directory that the person is to be asked about."""
    from hermes.cli.chat.workdir import chosen_workdir, open_question

    chosen = chosen_workdir(home, trust=trust, asks=False)
    return chosen, None if chosen is not None else open_question(home)
