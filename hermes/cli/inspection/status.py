"""`hermes status`: state of the daemon, for people, scripts and health checks."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import show
from hermes.cli.output import count, duration, one_line, print_json, print_text, size
from hermes.domain.errors import NotRunningError
from hermes.domain.text.listing import some

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.client import AdminClient
    from hermes.cli.parser import Commands
    from hermes.config.home import Home


def add_commands(commands: Commands) -> None:
    commands.add(
        "status",
        _status,
        "Show the state of the daemon. Exit code 0 if it is ready, 1 if it is not ready or does not run; --json\n"
        "prints a report in both cases.",
        examples="  hermes status\n  hermes status --json | jq .ready",
        json=True,
    )


def _status(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import SilentError, connect
    from hermes.cli.previous_boot import explaining_last_end
    from hermes.config.home import Home

    home, client = Home.from_environ(environ), connect(environ)
    try:
        with explaining_last_end(home):
            info = client.info()
    except (NotRunningError, SilentError) as error:
        if not args.json:
            raise
        print_json(_unavailable(home, error))
        return error.exit_code
    show(args, info, lambda: _print(info, client))
    return 0 if info["ready"] else 1


def _print(info: Mapping[str, Any], client: AdminClient) -> None:
    waiting = _waiting_sessions(client) if info.get("sessions_waiting") else []
    for name, value in _facts(info, waiting):
        print_text(f"{name + ':':<9} {one_line(value)}", indent=" " * 10)


def _unavailable(home: Home, error: Exception) -> dict[str, Any]:
    """Return the fields of /info that are known without an answer; `pid` is null when no daemon runs."""
    from hermes.config.home import holder

    pid = None if isinstance(error, NotRunningError) else holder(home)
    return {"ready": False, "reason": str(error), "pid": pid, "home": str(home.data_dir)}


def _waiting_sessions(client: AdminClient) -> list[str]:
    from hermes.cli.session_lookup import DaemonRecords

    return DaemonRecords(client).waiting()


def _facts(info: Mapping[str, Any], waiting: list[str]) -> list[tuple[str, str]]:
    sandbox = info.get("sandbox") or {}
    shown = [("sandbox", _sandbox(sandbox))] if sandbox else []
    first, later = (shown, []) if sandbox and not sandbox["works"] else ([], shown)
    return [
        *first,
        ("state", "ready" if info["ready"] else f"not ready: {info['reason']}"),
        ("version", str(info["version"])),
        ("process", f"{info['pid']}, up {duration(info['uptime_s'])}, {size(info.get('memory_bytes', 0))} of memory"),
        ("home", str(info["home"])),
        ("API", str(info.get("address", "off"))),
        ("model", f"{info['model']}{_model_health(info.get('model_health') or {}, time.time())}"),
        *later,
        ("turns", _turns(info.get("turns", {}))),
        *([("waiting", _waiting(waiting))] if waiting else []),
        *((each["name"], _platform(each)) for each in info.get("platforms", ())),
        *([("search", _index(index))] if (index := info.get("search_index")) and index["building"] else []),
        *([("jobs", _jobs(jobs, time.time()))] if (jobs := info.get("jobs")) else []),
        *([("hooks", _hooks(hooks))] if (hooks := info.get("hooks")) else []),
        *(("plugin", f"{name} is not used: {problem}") for name, problem in (info.get("plugins") or {}).items()),
        *([("MCP", _mcp(mcp))] if (mcp := info.get("mcp") or {}).get("servers") else []),
        *(("webhook", f"{name}: {problem}") for name, problem in (info.get("webhooks") or {}).items()),
        *(
            [("resume", str(info["resume"]))] if "resume" in info else []
        ),  # a boot loop: sessions are not resumed automatically
    ]


def _jobs(jobs: Mapping[str, Any], now: float) -> str:
    due = jobs["next_due_at"]
    coming = "none is due" if due is None else f"the next one is due in {duration(max(0.0, due - now))}"
    return f"{coming}, {count(jobs['running'], 'run')} in progress"


def _mcp(mcp: Mapping[str, Any]) -> str:
    states = ", ".join(f"{number} {state}" for state, number in sorted(mcp["states"].items()))
    problems = "".join(f"; {name}: {one_line(problem)}" for name, problem in mcp["problems"].items())
    waiting = "".join(
        f"; {name}: {each} tools withheld" for name, each in mcp.get("waiting_for_approval", {}).items()
    )
    return f"{count(mcp['servers'], 'server')}, {states}{problems}{waiting}"


def _hooks(hooks: Mapping[str, Any]) -> str:
    counts = f"{count(hooks['run'], 'run')}, {hooks['failed']} failed, {hooks['dropped']} dropped"
    last = f"; last problem: {hooks['problems'][-1]}" if hooks["problems"] else ""
    return f"{hooks['hooks']} configured, {counts}{last}"


def _sandbox(sandbox: Mapping[str, Any]) -> str:
    return f"{sandbox['text']}. Remedy: {sandbox['remedy']}" if sandbox["remedy"] else str(sandbox["text"])


def _model_health(health: Mapping[str, Any], now: float) -> str:
    """Return the age of the last answer, and the last failure if no answer came after it."""
    answered, failure = health.get("answered_at"), health.get("last_failure")
    said = f", last answered {duration(max(0.0, now - answered))} ago" if answered else ""
    if not failure or (answered or 0) > failure["at"]:
        return said
    what = " ".join(str(each) for each in (failure["code"], failure["cause"], failure["status"]) if each)
    where = f" at {failure['address']}" if failure["address"] else ""
    ago = duration(max(0.0, now - failure["at"]))
    who = f" of {failure['model']}" if failure.get("model") else ""
    return f"{said}; last call{who} failed {ago} ago: {what.replace('_', ' ')}{where}"


def _turns(counts: Mapping[str, int]) -> str:
    flying, calling = counts.get("in_flight", 0), counts.get("calling", 0)
    if not flying:
        return "none in flight"
    waiting = counts.get("waiting", 0)
    return ", ".join(
        filter(
            None,
            (
                f"{flying} in flight",
                f"{calling} calling the model" if calling else "",
                f"{waiting} waiting for a model call" if waiting else "",
            ),
        )
    )


def _waiting(sessions: list[str]) -> str:
    waits = "waits" if len(sessions) == 1 else "wait"
    return f"{count(len(sessions), 'session')} {waits} for an answer (`hermes sessions --waiting`): {some(sessions)}"


def _index(index: Mapping[str, Any]) -> str:
    done = f"{index['indexed']:,} of {index['total']:,} records"
    return f"indexing, {done}; search does not find newer messages yet"


def _platform(each: Mapping[str, str]) -> str:
    if each["state"] == "running" or not each["problem"]:
        return each["state"]
    return f"{each['state']}: {each['problem']}"
