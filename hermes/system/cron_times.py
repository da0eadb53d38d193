"""Arithmetic of cron expressions by the library cronsim, which handles daylight saving time as Debian's cron does."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

from hermes.domain.job.schedule import CronTimes

_FIELDS = 5
_DAY_S = 86_400.0
_BACK_S = (300.0, 10_800.0, 2 * _DAY_S, 40 * _DAY_S, 400 * _DAY_S, 3000 * _DAY_S)


class CronsimTimes(CronTimes):
    def problem(self, expression: str) -> str:
        from cronsim import CronSim, CronSimError  # noqa: PLC0415 - not needed before the first expression

        if len(expression.split(" ")) != _FIELDS:
            return f"it has {len(expression.split(' '))} fields, not {_FIELDS}"
        try:
            CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC))
        except CronSimError as error:
            return str(error)
        return ""

    def after(self, expression: str, time: float, zone: tzinfo) -> float | None:
        from cronsim import CronSim  # noqa: PLC0415 - as above

        return _first(CronSim(expression, datetime.fromtimestamp(time, zone)), later_than=time)

    def until(self, expression: str, time: float, zone: tzinfo) -> float | None:
        for back_s in _BACK_S:  # only forward: in reverse the library leaves out times that a clock change moved
            found = self.after(expression, time - back_s, zone)
            if found is None or found > time:
                continue
            while (following := self.after(expression, found, zone)) is not None and following <= time:
                found = following
            return found
        return None


def _first(found: object, *, later_than: float) -> float | None:
    """Return the first match that is later: at the end of daylight saving time wall-clock times come twice."""
    for _, match in zip(range(200), found, strict=False):  # type: ignore[call-overload]  # an iterator of times
        if match.timestamp() > later_than:
            return float(match.timestamp())
    return None
