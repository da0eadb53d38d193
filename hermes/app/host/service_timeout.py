"""Time that systemd allows for a stop.

systemd does not pass TimeoutStopSec to a service. `systemctl show` prints it for the unit that the cgroup names.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from contextlib import suppress

from hermes.app.host.os_process import own_cgroups

_MARGIN_S = 1.0  # before systemd would kill
_ASK_S = 5.0
_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


async def service_timeout_s(environ: Mapping[str, str]) -> float | None:
    """Return the stop timeout of this service; None without systemd or without a limit."""
    if "NOTIFY_SOCKET" not in environ or "INVOCATION_ID" not in environ:
        return None
    found = unit_in(await asyncio.to_thread(own_cgroups))
    if found is None:
        return None
    unit, of_user = found
    with suppress(OSError, TimeoutError):  # no systemctl, or it hangs: only the configuration counts
        query = await asyncio.create_subprocess_exec(
            "systemctl",
            *(("--user",) if of_user else ()),
            "show",
            "--property=TimeoutStopUSec",
            "--value",
            unit,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(_ASK_S):
                output, _ = await query.communicate()
        finally:
            if query.returncode is None:
                query.kill()
        return seconds_in(output.decode("ascii", "replace"))
    return None


def within(configured_s: float, allowed_s: float | None) -> float:
    """Return the configured timeout, or less if systemd would kill the daemon earlier."""
    return configured_s if allowed_s is None else min(configured_s, max(_MARGIN_S, allowed_s - _MARGIN_S))


def unit_in(cgroup: str) -> tuple[str, bool] | None:
    """Return the service that a cgroup file names, and whether it belongs to a user's manager."""
    for line in cgroup.splitlines():
        path = line.rpartition(":")[2]
        if path.endswith(".service"):
            return path.rpartition("/")[2], "/user@" in path
    return None


def seconds_in(span: str) -> float | None:
    """Parse a time span as systemd prints it, such as "1min 30s"; None for "infinity"."""
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d|w)\b", span)
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts) if parts else None
