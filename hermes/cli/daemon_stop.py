"""Stop and restart of the daemon: wait for its process, and report the work that is left open.

Everything that a daemon acknowledged is stored, however it ends. A wait ends with an error as soon as it is in vain.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import path_of, show
from hermes.cli.client import ANSWER_S, AdminClient, AdminError, SilentError
from hermes.cli.output import count, printable
from hermes.cli.pid import WatchedProcess, has_ended, is_alive, watch_process
from hermes.cli.previous_boot import explaining_last_end
from hermes.config.home import holder, is_free
from hermes.domain.errors import ConfigError, HermesError, NotRunningError
from hermes.domain.text.listing import some

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.config.home import Home

_POLL_S = 0.05
_TIMEOUT_S = 1.0
_RESTART_S = 3.0  # time for a service manager to start it again
_KEPT = "Open work is stored and resumes at the next start (`hermes daemon`)."


class StillStoppingError(HermesError):
    exit_code = 75


class NotBackError(HermesError):
    """The daemon has exited and was not started again."""


def stop_daemon(args: argparse.Namespace, home: Home) -> int:
    client = AdminClient(home.socket)
    with explaining_last_end(home):
        pid = _wait_for_info(client, home, args.timeout)["pid"]
    running = background_pids(client)
    deadline = time.monotonic() + args.timeout
    with watch_process(pid) as process:
        client.post("/stop", {"reason": args.reason}, timeout_s=ANSWER_S)
        while not (_gone(client, home) and has_ended(process)):
            if time.monotonic() > deadline:
                raise StillStoppingError(f"the daemon (pid {pid}) is still stopping after {args.timeout:g} s")
            time.sleep(_POLL_S)
    clean, left, outgoing = _read_leftovers(home)
    lines = [_stopped_text(home, pid, clean=clean)]
    if on := sum(map(is_alive, running)):
        listed = "`hermes ps --running` lists them after the next start"
        lines.append(f"{processes_run(on)} on (processes.keep_on_stop); {listed}.")
    if left:
        have = "has" if len(left) == 1 else "have"
        resumes = f"{have} open work, which is stored and resumes at the next start"
        lines.append(f"{count(len(left), 'session')} {resumes}: {some(left)}.")
    if outgoing:
        wait = f"{'waits' if outgoing == 1 else 'wait'} for delivery to a chat"
        lines.append(f"{count(outgoing, 'message')} {wait}; stored, and sent after the next start.")
    answer = {"stopped": True, "pid": pid, "clean": clean, "open_sessions": left, "undelivered": outgoing}
    show(args, answer, lines)
    return 0 if clean is not False else 1


def _stopped_text(home: Home, pid: int, *, clean: bool | None) -> str:
    if clean is False:
        return (
            f"The daemon on {home.data_dir} (pid {pid}) has exited, but did not stop cleanly: it was killed, "
            "crashed or ran out of time. Everything that it acknowledged is stored."
        )
    return f"The daemon on {home.data_dir} (pid {pid}) has stopped."


def _read_leftovers(home: Home) -> tuple[bool | None, list[str], int]:
    """Return whether it stopped cleanly (None: unknown), the sessions with open work, the undelivered messages."""
    from hermes.cli.session_lookup import stored
    from hermes.supervision.boot import read_boot

    with suppress(HermesError, OSError), stored(home) as reader:  # the next daemon may run already
        boot = read_boot(reader, time.time())
        outgoing = sum(each.final for each in reader.outbox())
        return (None if boot.first else bool(boot.stopped)), list(reader.pending()), outgoing
    return None, [], 0


def _wait_for_info(client: AdminClient, home: Home, timeout_s: float) -> Mapping[str, Any]:
    """Return /info, also of a daemon that is still starting or restarting."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            return client.info(timeout_s=min(ANSWER_S, timeout_s))
        except SilentError as error:
            raise StillStoppingError(str(error)) from error
        except NotRunningError:
            if not _is_starting_or_stopping(home):
                raise
            if time.monotonic() > deadline:
                raise StillStoppingError(
                    f"a daemon (pid {holder(home)}) holds {home.data_dir} and does not answer on its socket after "
                    f"{timeout_s:g} s; `kill {holder(home)}` stops it"
                ) from None
        time.sleep(_POLL_S)


def _is_starting_or_stopping(home: Home) -> bool:
    """Return whether a daemon starts, stops or restarts: the home is locked, or its last holder still runs."""
    if not is_free(home):
        return True
    try:
        return b"hermes" in Path(f"/proc/{holder(home)}/cmdline").read_bytes()
    except OSError:
        return False


# ---------------------------------------------------------------- restart


def restart_daemon(args: argparse.Namespace, home: Home) -> int:
    client = AdminClient(home.socket)
    before = _wait_for_info(client, home, args.timeout)
    with watch_process(before["pid"]) as process:
        _request_restart(client, args.reason)
        after = _next_boot(client, before, process, args.timeout)
        if isinstance(after, str):
            raise NotBackError(f"the daemon (pid {before['pid']}) {after or _ended(home, before['pid'])}")
    answer = {"restarted": True, "pid": after["pid"], "version": after["version"]}
    return show(
        args, answer, f"The daemon on {home.data_dir} has restarted (pid {after['pid']}, version {after['version']})."
    )


def _request_restart(client: AdminClient, reason: str) -> None:
    try:
        client.post("/stop", {"reason": reason, "restart": True})
    except AdminError as error:
        if error.code == "bad_configuration":
            raise ConfigError(str(error)) from error
        raise


def _next_boot(
    client: AdminClient, before: Mapping[str, Any], process: WatchedProcess | None, timeout_s: float
) -> Mapping[str, Any] | str:
    """Return /info of the restarted daemon, or why there is none; empty if the reason was not seen here.

    A restart keeps the process: if the process has ended, the daemon does not come back by itself.
    """
    deadline = time.monotonic() + timeout_s
    given_up_at, overtaken = None, False
    while (after := _info(client)) is None or not _is_back(before, after):
        overtaken = overtaken or (after is not None and after.get("restarting") is False)
        now = time.monotonic()
        if process is not None and has_ended(process):
            if overtaken:
                return f"has stopped: a stop was requested meanwhile. {_KEPT}"
            given_up_at = given_up_at or min(deadline, now + _RESTART_S)
            if now >= given_up_at:
                return ""
        if now > deadline:
            raise StillStoppingError(f"the daemon (pid {before['pid']}) is not back after {timeout_s:g} s")
        time.sleep(_POLL_S)
    return after


def _ended(home: Home, pid: int) -> str:
    from hermes.app.host.refused_start import refusal_of

    if (refusal := refusal_of(home, pid)) is not None:
        return (
            f"did not come back: it refused to start (exit code {refusal.exit_code}): {printable(refusal.problem)}\n"
            f"{_KEPT}"
        )
    clean, _, _ = _read_leftovers(home)
    what = "was killed or crashed" if clean is False else "ended"
    return f"{what} and did not come back; see the log in {home.log_dir}. {_KEPT}"


def _info(client: AdminClient) -> Mapping[str, Any] | None:
    try:
        info: Mapping[str, Any] = client.get("/info", timeout_s=_TIMEOUT_S)
    except HermesError:  # it is restarting
        return None
    return info


def _is_back(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Return whether this is another boot of the daemon, and ready."""
    return bool(after["ready"]) and after["epoch"] != before["epoch"]


# ---------------------------------------------------------------- processes


def _gone(client: AdminClient, home: Home) -> bool:
    """Return whether the daemon is gone. Its socket closes early: only a free lock means that all is written."""
    from hermes.config.home import is_free

    try:
        client.get("/info", timeout_s=_TIMEOUT_S)
    except NotRunningError:
        return is_free(home)
    except HermesError:
        return False  # busy stopping
    return False


def background_pids(client: AdminClient, session: str | None = None) -> list[int]:
    """Return the pids of running background processes."""
    path = "/api/processes" if session is None else path_of("api", "sessions", session, "processes")
    try:
        listed = client.get(path)["processes"]
    except AdminError:  # a daemon without background processes
        return []
    return [process["pid"] for process in listed if process["running"] and process["pid"]]


def processes_run(number: int) -> str:
    return "1 background process runs" if number == 1 else f"{number} background processes run"
