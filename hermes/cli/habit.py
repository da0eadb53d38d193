"""Command lines of similar programs that mean one of ours. Imported for every command, so it imports nothing."""

from __future__ import annotations

from typing import Final

_SAME: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ("help",): ("--help",),
    ("version",): ("--version",),
    ("tui",): ("chat",),
    ("chat", "-q"): ("chat", "-z"),
    ("-V",): ("--version",),
    ("-z",): ("chat", "-z"),
    ("-q",): ("chat", "-z"),
    ("-r",): ("chat", "-r"),
    ("--resume",): ("chat", "-r"),
    ("-c",): ("chat", "-r"),
    ("--continue",): ("chat", "-r"),
    ("--plain",): ("chat", "--plain"),
    ("--yolo",): ("chat", "--yolo"),
    ("gateway",): ("daemon",),
    ("gateway", "run"): ("daemon",),
    ("gateway", "setup"): ("setup",),
    **{("gateway", verb): ("service", verb) for verb in ("install", "start", "stop", "restart", "uninstall")},
    ("gateway", "status"): ("status",),
    ("config", "list"): ("config", "show"),
    ("config", "ls"): ("config", "show"),
    ("session",): ("sessions",),
    ("sessions", "ls"): ("sessions", "list"),
    ("tools", "ls"): ("tools", "list"),
    ("webhook",): ("webhooks",),
}


def translated(argv: list[str]) -> list[str]:
    """Return our command line for one of a similar program; others unchanged."""
    if argv[:1] == ["help"] and len(argv) > 1:
        return [*argv[1:], "--help"]
    for length in (2, 1):
        if (same := _SAME.get(tuple(argv[:length]))) is not None and len(argv) >= length:
            return [*same, *argv[length:]]
    return argv
