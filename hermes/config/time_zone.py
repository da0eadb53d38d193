"""Lookup of time zones by name, and of the system's own, when a configuration is read."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import tzinfo

_LOCAL = Path("/etc/localtime")


def zone_complaint(name: str) -> str:
    """Return the problem of a time zone name; empty if it is valid or empty (the system's zone)."""
    if not name or _named(name) is not None:
        return ""
    return "must be the name of a known time zone, such as Europe/Berlin, or empty"


def find_zone(name: str, environ: Mapping[str, str]) -> tzinfo:
    """Return the zone of that name. An empty name is the system's zone: TZ, then /etc/localtime, then UTC."""
    wanted = name or environ.get("TZ", "").removeprefix(":")
    if wanted.startswith("/") and (zone := _from_file(Path(wanted))) is not None:
        return zone
    if wanted:
        if (zone := _named(wanted)) is not None:
            return zone
        from loguru import logger  # noqa: PLC0415 - slow, and only for this

        logger.warning("unknown time zone {!r}; using UTC for resets", wanted)
        return UTC
    return _from_file(_LOCAL) or UTC


def _named(name: str) -> tzinfo | None:
    from zoneinfo import ZoneInfo  # noqa: PLC0415 - most homes name none

    try:
        return ZoneInfo(name)
    except (OSError, ValueError, KeyError):  # missing, not a zone file, or not a valid name
        return None


def _from_file(path: Path) -> tzinfo | None:
    from zoneinfo import ZoneInfo  # noqa: PLC0415

    with suppress(OSError, ValueError):
        _, found, name = str(path.resolve()).rpartition("zoneinfo/")
        if found and (zone := _named(name)) is not None:
            return zone
        with path.open("rb") as file:
            return ZoneInfo.from_file(file, key="the system's")
    return None
