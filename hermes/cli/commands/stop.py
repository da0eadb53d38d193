"""Stopping and restarting the daemon from outside: waiting for the process itself, and saying what is left open.

Nothing that was acknowledged is lost by any end of a daemon. Whoever waits here is told when the wait is in vain.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.cli.client import ANSWER_S, AdminClient, AdminError, SilentError
from hermes.cli.output import count, one_line, print_json, printable, say
from hermes.cli.pid import WatchedProcess, has_ended, lives, process_of
from hermes.cli.previous_boot import telling_how_it_ended
from hermes.config.home import holder, is_free
from hermes.domain.errors import HermesError, NotRunningError
from hermes.domain.listing import some

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.config.home import Home

_POLL_S = 0.05
_PATIENCE_S = 1.0
_AGAIN_S = 3.0  # for a service manager to bring back what has died
_KEPT = "What was in flight is kept and goes on at the next start (`hermes daemon`)."


class StillStoppingError(HermesError):
    exit_code = 75


class NotBackError(HermesError):
    """The daemon is gone, and nobody has brought it back."""


def stop_daemon(args: argparse.Namespace, home: Home) -> int:
    client = AdminClient(home.socket)
    with telling_how_it_ended(home):
        pid = _first_word(client, home, args.timeout)["pid"]
    running = in_the_background(client)
    deadline = time.monotonic() + args.timeout
    with process_of(pid) as process:
        client.post("/stop", {"reason": args.reason}, timeout_s=ANSWER_S)
        while not (_gone(client, home) and has_ended(process)):
            if time.monotonic() > deadline:
                raise StillStoppingError(f"the daemon (pid {pid}) is still stopping after {args.timeout:g} s")
            time.sleep(_POLL_S)
    clean, left, outgoing = _left_behind(home)
    if args.json:
        print_json({"stopped": True, "pid": pid, "clean": clean, "open_sessions": left, "undelivered": outgoing})
    else:
        say(_farewell(home, pid, clean=clean))
        if on := sum(map(lives, running)):
            say(f"{processes_run(on)} on and will be found again (processes.keep_on_stop).")
        if left:
            one = len(left) == 1
            goes_on = f"{'has' if one else 'have'} open work, which is kept and goes on at the next start"
            say(one_line(f"{count(len(left), 'session')} {goes_on}: {some(left)}."))
        if outgoing:
            waits = "waits" if outgoing == 1 else "wait"
            say(
                f"{count(outgoing, 'message')} {waits} to be delivered to a chat; kept and sent after the next start."
            )
    return 0 if clean is not False else 1


def _farewell(home: Home, pid: int, *, clean: bool | None) -> str:
    if clean is False:
        return (
            f"The daemon on {home.data_dir} (pid {pid}) is gone, but did not come to the end of its stop: it was "
            "killed, crashed or ran out of time. Nothing that it had acknowledged is lost."
        )
    return f"The daemon on {home.data_dir} (pid {pid}) has stopped."


def _left_behind(home: Home) -> tuple[bool | None, list[str], int]:
    """Whether it stopped cleanly, None: nobody can say; the sessions with open work; how much is yet to be said."""
    from hermes.cli.session_lookup import stored
    from hermes.supervision.boot import read_boot

    with suppress(HermesError, OSError), stored(home) as reader:  # the next daemon is there already, say
        boot = read_boot(reader, time.time())
        outgoing = sum(each.final for each in reader.outbox())
        return (None if boot.first else bool(boot.stopped)), list(reader.pending()), outgoing
    return None, [], 0


def _first_word(client: AdminClient, home: Home, timeout_s: float) -> Mapping[str, Any]:
    """Of a daemon that is just starting, or being restarted, when it can speak."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return client.info(timeout_s=min(ANSWER_S, timeout_s))
        except SilentError as error:
            raise StillStoppingError(str(error)) from error
        except NotRunningError:
            if not _is_coming(home):
                raise
            if time.monotonic() > deadline:
                raise StillStoppingError(
                    f"a daemon (pid {holder(home)}) holds {home.data_dir} and does not answer on its socket after "
                    f"{timeout_s:g} s; `kill {holder(home)}` stops it"
                ) from None
        time.sleep(_POLL_S)


def _is_coming(home: Home) -> bool:
    """Somebody holds the home, or the process that held it last executes Hermes anew: a daemon starts, or stops."""
    if not is_free(home):
        return True
    try:
        return b"hermes" in Path(f"/proc/{holder(home)}/cmdline").read_bytes()
    except OSError:
        return False


# ---------------------------------------------------------------- restart


def restart_daemon(args: argparse.Namespace, home: Home) -> int:
    client = AdminClient(home.socket)
    before = _first_word(client, home, args.timeout)
    with process_of(before["pid"]) as process:
        client.post("/stop", {"reason": args.reason, "restart": True})
        after = _next_life(client, before, process, args.timeout)
        if isinstance(after, str):
            raise NotBackError(f"the daemon (pid {before['pid']}) {after or _ended(home, before['pid'])}")
    if args.json:
        print_json({"restarted": True, "pid": after["pid"], "version": after["version"]})
    else:
        say(f"The daemon on {home.data_dir} is back (pid {after['pid']}, version {after['version']}).")
    return 0


def _next_life(
    client: AdminClient, before: Mapping[str, Any], process: WatchedProcess | None, timeout_s: float
) -> Mapping[str, Any] | str:
    """The restarted daemon, or why there is none, as far as that was seen.

    It is the same process: one that has ended does not come back by itself.
    """
    deadline = time.monotonic() + timeout_s
    given_up_at, overtaken = None, False
    while (after := _info(client)) is None or not _is_back(before, after):
        overtaken = overtaken or (after is not None and after.get("restarting") is False)
        now = time.monotonic()
        if process is not None and has_ended(process):
            if overtaken:
                return f"has stopped: a stop was asked for meanwhile. {_KEPT}"
            given_up_at = given_up_at or min(deadline, now + _AGAIN_S)
            if now >= given_up_at:
                return ""
        if now > deadline:
            raise StillStoppingError(f"the daemon (pid {before['pid']}) is not back after {timeout_s:g} s")
        time.sleep(_POLL_S)
    return after


def _ended(home: Home, pid: int) -> str:
    from hermes.app.refused_start import refusal_of

    if (refusal := refusal_of(home, pid)) is not None:
        return (
            f"did not come back: it refused to start (exit code {refusal.exit_code}): {printable(refusal.problem)}\n"
            f"{_KEPT}"
        )
    clean, _, _ = _left_behind(home)
    what = "was killed, or crashed," if clean is False else "ended"
    return f"{what} instead of coming back; {home.log_dir} may say why. {_KEPT}"


def _info(client: AdminClient) -> Mapping[str, Any] | None:
    try:
        info: Mapping[str, Any] = client.get("/info", timeout_s=_PATIENCE_S)
    except HermesError:  # between two lives
        return None
    return info


def _is_back(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Another life of it, and ready."""
    return bool(after["ready"]) and after["epoch"] != before["epoch"]


# ---------------------------------------------------------------- processes


def _gone(client: AdminClient, home: Home) -> bool:
    """Its socket closes early; only the lock says that everything is written and the home is free."""
    from hermes.config.home import is_free

    try:
        client.get("/info", timeout_s=_PATIENCE_S)
    except NotRunningError:
        return is_free(home)
    except HermesError:
        return False  # too busy stopping to answer
    return False


def in_the_background(client: AdminClient, session: str | None = None) -> list[int]:
    """The numbers of the processes that run there."""
    try:
        listed = client.get("/processes", session=session)["processes"]
    except AdminError:  # none that it could tell of
        return []
    return [process["pid"] for process in listed if process["running"] and process["pid"]]


def processes_run(number: int) -> str:
    return "1 background process runs" if number == 1 else f"{number} background processes run"
