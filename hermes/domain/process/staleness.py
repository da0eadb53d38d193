"""Decision whether a background process works, so that a reset waits for it. Pure: state and time are arguments.

A process blocks a reset while its heartbeat is fresh, it was active within `stale_after_s`, and it is younger than
`max_age_s`. Being alive or listening on a port is not enough. A process that has just ended blocks until its
conversation is notified. One that a new daemon has just found blocks until its activity is known. Neither blocks
longer than a heartbeat is fresh. Each result has a reason.

Times are wall-clock times, and the clock can be set back. A time slightly ahead counts as now. A time further ahead
was written by a wrong clock and counts as long ago.
"""

from __future__ import annotations

from math import inf, isinf

from hermes.domain.process.process import EndReason
from hermes.domain.process.process_record import ProcessView
from hermes.domain.values import dataclass

CLOCK_SLACK_S = 60.0  # how far ahead a time may lie and still be believed

_SIZES = ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB"))


@dataclass(frozen=True, slots=True, kw_only=True)
class StalenessSettings:
    heartbeat_fresh_s: float = 30.0
    stale_after_s: float = 1800.0
    max_age_s: float = 86400.0


def blocking(process: ProcessView, settings: StalenessSettings, now: float) -> str:
    """Return why a reset waits for the process; empty if it does not."""
    if _excuse(process, settings, now):
        return ""
    if process.ended_at is not None:
        return f"it ended {_ago(process.ended_at, now)}, and the conversation is not notified yet"
    if not process.known and _age(process.active_at, now) >= settings.stale_after_s:
        return "it was found again just now, and whether it works is not known yet"
    return f"it did something {_ago(process.active_at, now)}"


def explain(process: ProcessView, settings: StalenessSettings, now: float) -> str:
    """Its age, what it did, and whether and why a reset waits for it."""
    name = f"{process.command} (pid {process.pid})"
    if process.ended_at is not None:
        ended = f"{name} ended {_ago(process.ended_at, now)} with {how_ended(process)}, after {_done(process)}."
        why = blocking(process, settings, now)
        return f"{ended} A reset would wait for it: {why}." if why else ended
    return f"{name} {_life(process, now)}. {_judgement(process, settings, now)}"


def how_ended(process: ProcessView) -> str:
    """Return the end in a few words, for example "exit code 0" or "signal 15 (killed: PERSON)"."""
    if process.signal is not None:
        code = f"signal {process.signal}"
    else:
        code = "an unknown exit code" if process.exit_code is None else f"exit code {process.exit_code}"
    reason = "" if process.reason == EndReason.EXITED else process.reason
    why = ": ".join(filter(None, (reason, process.detail)))
    return f"{code} ({why})" if why else code


def lasting(seconds: float) -> str:
    """Return a duration in its two largest units: 45 s, 2 h, 1 d 12 h."""
    whole = max(0, int(seconds))
    counts = ((whole // 86400, "d"), (whole // 3600 % 24, "h"), (whole // 60 % 60, "min"), (whole % 60, "s"))
    first = next((n for n, (count, _) in enumerate(counts) if count), len(counts) - 1)
    (count, unit), *smaller = counts[first : first + 2]
    return " ".join([f"{count} {unit}", *(f"{more} {of}" for more, of in smaller if more)])


def _excuse(process: ProcessView, settings: StalenessSettings, now: float) -> str:
    """Return why the process does not block a reset; empty if it does."""
    if process.ended_at is not None:
        telling = process.untold and _age(process.ended_at, now) < settings.heartbeat_fresh_s
        return "" if telling else "it has ended"
    if _age(process.heartbeat_at, now) >= settings.heartbeat_fresh_s:
        return _since("nothing was heard of it", process.heartbeat_at, now, settings.heartbeat_fresh_s)
    judged = process.known or not settings.stale_after_s
    if judged and _age(process.active_at, now) >= settings.stale_after_s:
        return _since("it did nothing", process.active_at, now, settings.stale_after_s)
    if _age(process.started_at, now) >= settings.max_age_s:
        return _since("it has been running", process.started_at, now, settings.max_age_s)
    return ""


def _judgement(process: ProcessView, settings: StalenessSettings, now: float) -> str:
    excuse = _excuse(process, settings, now)
    if excuse:
        return f"A reset would not wait for it: {excuse}."
    return (
        f"A reset would wait for it: {blocking(process, settings, now)}. It would until it has done nothing for "
        f"{lasting(settings.stale_after_s)} or is {lasting(settings.max_age_s)} old."
    )


def _life(process: ProcessView, now: float) -> str:
    listens = f", listens on {_ports(process.ports)}" if process.ports else ""
    return (
        f"was started {_ago(process.started_at, now)}, last did something {_ago(process.active_at, now)} "
        f"({_done(process)} in all){listens}"
    )


def _ports(ports: tuple[int, ...]) -> str:
    return ("port " if len(ports) == 1 else "ports ") + ", ".join(map(str, ports))


def _done(process: ProcessView) -> str:
    cpu = f"{process.cpu_s:.1f} s" if process.cpu_s < 10 else lasting(process.cpu_s)
    return f"{cpu} of CPU and {_size(process.output_bytes)} of output"


def _since(what: str, at: float, now: float, limit_s: float) -> str:
    age = _age(at, now)
    if isinf(age):
        return f"{what} since a time that is yet to come: the clock was set back"
    return f"{what} for {lasting(age)} (the limit is {lasting(limit_s)})"


def _ago(at: float, now: float) -> str:
    age = _age(at, now)
    return "at a time that is yet to come" if isinf(age) else f"{lasting(age)} ago"


def _age(at: float, now: float) -> float:
    return inf if at > now + CLOCK_SLACK_S else max(0.0, now - at)


def _size(count: int) -> str:
    for size, unit in _SIZES:
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} bytes"
