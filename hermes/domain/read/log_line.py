"""Lines of the daemon's log file: parsing of both formats, and filters. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

from hermes.domain.values import dataclass

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
_TEXT = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) ([A-Z]+) +(\S+): (.*)", re.DOTALL)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)([smhd])")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    at: float
    level: str
    logger: str
    message: str  # may have several lines: a traceback
    raw: str

    def as_json(self) -> dict[str, Any]:
        at = datetime.fromtimestamp(self.at).astimezone().isoformat(timespec="milliseconds")
        return {"at": at, "level": self.level, "logger": self.logger, "message": self.message}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    level: str = "DEBUG"  # the lowest that is shown
    since: float = 0.0
    session: str = ""  # id that the line must contain

    def admits(self, line: LogLine) -> bool:
        known = line.level in LEVELS and LEVELS.index(line.level) < LEVELS.index(self.level)
        return not known and line.at >= self.since and self.session in line.raw


def parse_line(raw: str) -> LogLine | None:
    """Parse the first line of an entry, text or JSON; None: it continues the entry before it."""
    if raw.startswith("{"):
        return _from_json(raw)
    if (found := _TEXT.match(raw)) is None:
        return None
    at = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S.%f").astimezone().timestamp()
    return LogLine(at=at, level=found[2], logger=found[3], message=found[4], raw=raw)


def _from_json(raw: str) -> LogLine | None:
    try:
        found = json.loads(raw)
        at = datetime.fromisoformat(found["at"]).timestamp()
        return LogLine(at=at, level=found["level"], logger=found["logger"], message=found["message"], raw=raw)
    except (ValueError, KeyError, TypeError):
        return None


def entries(lines: Iterable[str]) -> Iterator[LogLine]:
    """Yield the entries of a log. Lines of a traceback belong to the entry before them."""
    current: LogLine | None = None
    for raw in lines:
        text = raw.rstrip("\n")
        parsed = parse_line(text)
        if parsed is None and current is not None:
            current = joined(current, text)
            continue
        if current is not None:
            yield current
        current = parsed
    if current is not None:
        yield current


def joined(line: LogLine, more: str) -> LogLine:
    return LogLine(
        at=line.at,
        level=line.level,
        logger=line.logger,
        message=f"{line.message}\n{more}",
        raw=f"{line.raw}\n{more}",
    )


def parse_span(text: str) -> float | None:
    """Return the seconds that `30s`, `10m`, `2h` or `3d` means; None for anything else."""
    span = _SPAN.fullmatch(text)
    return None if span is None else float(span[1]) * _UNITS[span[2]]


def parse_since(text: str, now: float) -> float:
    """Return the time that `10m`, `2h` (ago), `2026-01-02` or `2026-01-02T03:04` means. Raises ValueError."""
    if (span_s := parse_span(text)) is not None:
        return now - span_s
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except ValueError:
        raise ValueError(f"expected a time like 10m, 2h, 3d or 2026-01-02T03:04, found {text[:40]!r}") from None
