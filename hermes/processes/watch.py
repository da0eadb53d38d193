"""Watch of a process's output for texts, with a rate limit of notices. Pure.

A line that contains a watched text causes a notice, at most one in 15 seconds. Further matches are held back and
reported with the next notice, or when the process ends. After three such windows in a row the process is no longer
watched, and a notice is sent when it ends. A breaker limits the notices of all processes together.
"""

from __future__ import annotations

from typing import Final

from hermes.domain.values import dataclass, replace
from hermes.processes.command_output import plain_text

BETWEEN_S: Final = 15.0
STRIKES_MAX: Final = 3
_LINES_MAX: Final = 20  # in a notice
_LINE_MAX: Final = 500  # of each
_UNFINISHED_MAX_BYTES: Final = 8192  # a longer line is split

_BREAKER_MAX: Final = 15
_BREAKER_WINDOW_S: Final = 10.0
_BREAKER_PAUSE_S: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchPatterns:
    patterns: tuple[str, ...]
    terminal: bool = False
    unfinished: bytes = b""  # the last line, without its end
    noticed_at: float | None = None
    held: tuple[str, ...] = ()  # the last matching lines since then
    suppressed: int = 0  # number of earlier matching lines since then
    strikes: int = 0  # windows in a row with held lines
    promoted: bool = False  # no longer watched; a notice is sent at the end instead


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchNotice:
    lines: tuple[str, ...]
    suppressed: int = 0  # matching lines that are not shown
    promoted: bool = False  # this is the last notice


def watch_output(watch: WatchPatterns, data: bytes, now: float) -> tuple[WatchPatterns, WatchNotice | None]:
    """Return the new state and notice after new output, or after time has passed."""
    if watch.promoted or not watch.patterns:
        return watch, None
    *lines, rest = (watch.unfinished + data).split(b"\n")
    if len(rest) > _UNFINISHED_MAX_BYTES:
        lines.append(rest)
        rest = b""
    return _judged(replace(watch, unfinished=rest), _matching(watch, lines), now)


def watch_end(watch: WatchPatterns, now: float) -> tuple[WatchPatterns, WatchNotice | None]:
    """Return the new state and notice at the process's end: held and unfinished lines are reported too."""
    if watch.promoted or not watch.patterns:
        return watch, None
    last = replace(watch, unfinished=b"", noticed_at=None, strikes=0)
    return _judged(last, _matching(watch, [watch.unfinished]), now)


def _matching(watch: WatchPatterns, lines: list[bytes]) -> list[str]:
    wanted = [pattern.encode() for pattern in watch.patterns]
    # Decode only lines that may match. Escape sequences may split a word, so lines with them count.
    likely = (
        lines if watch.terminal else [line for line in lines if any(p in line for p in wanted) or b"\x1b" in line]
    )
    texts = (plain_text(line, terminal=watch.terminal) for line in likely)
    return [text for text in texts if any(pattern in text for pattern in watch.patterns)]


def _judged(watch: WatchPatterns, found: list[str], now: float) -> tuple[WatchPatterns, WatchNotice | None]:
    lines = (*watch.held, *(line.strip()[:_LINE_MAX] for line in found))
    shown = lines[-_LINES_MAX:]
    suppressed = watch.suppressed + len(lines) - len(shown)
    if not shown:
        return watch, None
    if watch.noticed_at is not None and 0 <= now - watch.noticed_at < BETWEEN_S:
        return replace(watch, held=shown, suppressed=suppressed), None
    strikes = watch.strikes + 1 if watch.held else 0
    promoted = strikes >= STRIKES_MAX
    notice = WatchNotice(lines=shown, suppressed=suppressed, promoted=promoted)
    return replace(watch, noticed_at=now, held=(), suppressed=0, strikes=strikes, promoted=promoted), notice


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaker:
    """Rate limit of the notices of all processes together."""

    recent: tuple[float, ...] = ()
    paused_until: float | None = None


def admit(breaker: Breaker, now: float) -> tuple[Breaker, bool]:
    """Return whether one more notice may be sent. Others are dropped; the output itself is kept."""
    if breaker.paused_until is not None and breaker.paused_until - _BREAKER_PAUSE_S <= now < breaker.paused_until:
        return breaker, False
    recent = tuple(at for at in breaker.recent if 0 <= now - at < _BREAKER_WINDOW_S)
    if len(recent) >= _BREAKER_MAX:
        return Breaker(paused_until=now + _BREAKER_PAUSE_S), False
    return Breaker(recent=(*recent, now)), True
