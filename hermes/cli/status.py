"""`hermes status`: whether a daemon runs here and can take work, for people, scripts and health checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.cli.output import count, duration, one_line, print_json, say, size

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from hermes.cli.parser import Commands


def add_commands(commands: Commands) -> None:
    commands.add(
        "status",
        _status,
        "Say how the daemon is. Exit code 0 if it is ready to take work, 1 if it is not or none runs.",
        examples="  hermes status\n  hermes status --json | jq .ready",
        json=True,
    )


def _status(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.cli.client import connect
    from hermes.cli.last_life import telling_how_it_ended
    from hermes.home import Home

    with telling_how_it_ended(Home.from_environ(environ)):
        info = connect(environ).info()
    if args.json:
        print_json(info)
    else:
        for name, value in _facts(info):
            say(f"{name + ':':<9} {one_line(value)}", indent=" " * 10)
    return 0 if info["ready"] else 1


def _facts(info: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [
        ("state", "ready" if info["ready"] else f"not ready: {info['reason']}"),
        ("version", str(info["version"])),
        ("process", f"{info['pid']}, up {duration(info['uptime_s'])}, {size(info.get('memory_bytes', 0))} of memory"),
        ("home", str(info["home"])),
        ("API", str(info.get("address", "off"))),
        ("model", str(info["model"])),
        ("turns", _turns(info.get("turns", {}))),
        *([("waiting", _waiting(waiting))] if (waiting := info.get("sessions_waiting", 0)) else []),
        *((each["name"], _platform(each)) for each in info.get("platforms", ())),
        *([("search", _index(index))] if (index := info.get("search_index")) and index["building"] else []),
        *([("resume", str(info["resume"]))] if "resume" in info else []),  # a boot loop: they wait for somebody
    ]


def _turns(counts: Mapping[str, int]) -> str:
    flying, calling = counts.get("in_flight", 0), counts.get("calling", 0)
    if not flying:
        return "none in flight"
    return f"{flying} in flight" + (f", {calling} of them asking the model" if calling else "")


def _waiting(sessions: int) -> str:
    one = sessions == 1
    return f"{count(sessions, 'session')} wait{'s' if one else ''} for an answer; `hermes sessions` shows which"


def _index(index: Mapping[str, Any]) -> str:
    done = f"{index['indexed']:,} of {index['total']:,} records"
    return f"indexing, {done}; newer messages are not found yet"


def _platform(each: Mapping[str, str]) -> str:
    if each["state"] == "running" or not each["problem"]:
        return each["state"]
    return f"{each['state']}: {each['problem']}"
