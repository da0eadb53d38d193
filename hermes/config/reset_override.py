"""Line of `session_reset.overrides`: a reset policy for a platform or a kind of chat. Pure.

`WHERE: WHEN`, where WHEN is `none`, `idle`, `idle MINUTES`, `daily`, `daily at HOUR`, or an idle and a daily one:
`telegram: idle 120 daily at 6`, or `both`. Omitted parts have the default. A platform wins over a kind of
chat.
"""

from __future__ import annotations

import re

from hermes.config.platforms import PLATFORMS
from hermes.domain.values import dataclass

CHAT_TYPES = ("dm", "group", "channel", "thread")
SURFACES = ("api", "cli", *PLATFORMS, "webhook")
_MAX_MINUTES = 5_256_000
_MAX_HOUR = 23
_LINE = re.compile(
    r"(?P<where>[a-z][a-z0-9_-]*)\s*:\s*"
    r"(?:(?P<none>none)|(?P<both>both)|(?P<idle>idle(?:\s+(?P<minutes>\d{1,9}))?)?\s*(?P<daily>daily(?:\s+at\s+(?P<hour>\d{1,3}))?)?)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetOverride:
    where: str  # a platform, or one of CHAT_TYPES
    mode: str
    idle_minutes: int | None = None  # None: the default
    at_hour: int | None = None


def parse_override(text: str) -> ResetOverride:
    """Parse a line. Raises ValueError."""
    found = _LINE.fullmatch(" ".join(text.casefold().split()))
    if found is None or not (found["none"] or found["both"] or found["idle"] or found["daily"]):
        raise ValueError(
            'must be like "telegram: daily at 6", "group: idle 120", "slack: idle 60 daily" or "dm: none"'
        )
    if found["where"] not in (*SURFACES, *CHAT_TYPES):
        known = f"a platform ({', '.join(SURFACES)}) nor a kind of chat ({', '.join(CHAT_TYPES)})"
        raise ValueError(f"{found['where'][:40]!r} is neither {known}")
    minutes = None if found["minutes"] is None else int(found["minutes"])
    hour = None if found["hour"] is None else int(found["hour"])
    if minutes is not None and not 1 <= minutes <= _MAX_MINUTES:
        raise ValueError(f"idle minutes must be from 1 to {_MAX_MINUTES}, not {minutes}")
    if hour is not None and hour > _MAX_HOUR:
        raise ValueError(f"the hour must be from 0 to {_MAX_HOUR}, not {hour}")
    mode = (
        "none"
        if found["none"]
        else "both"
        if found["both"] or (found["idle"] and found["daily"])
        else "idle"
        if found["idle"]
        else "daily"
    )
    return ResetOverride(where=found["where"], mode=mode, idle_minutes=minutes, at_hour=hour)


def complaint_about_all(texts: tuple[str, ...]) -> str:
    """Return a problem of the list, whose lines are valid; empty if there is none."""
    named = [parse_override(text).where for text in texts]
    twice = next((where for n, where in enumerate(named) if where in named[:n]), "")
    return f"{twice} is set twice" if twice else ""


def complaint_about(text: str) -> str:
    try:
        parse_override(text)
    except ValueError as error:
        return str(error)
    return ""
