"""Effect of a skill on later turns: runs of each version, and when a version is clearly worse. Pure.

A run is a turn that loaded the skill. It begins when the skill is loaded, and its end says how the turn went. A run
without an end was interrupted.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from hermes.domain.change import Change
from hermes.domain.values import dataclass, replace

PREFIX: Final = "skill-runs/"
MIN_RUNS: Final = 5  # of each of two versions, before they are compared
LESS_SUCCESS: Final = 0.3  # share of successful runs by which a version is clearly worse
MORE_COST: Final = 2.0  # factor of calls and of tokens by which it is clearly worse
LATEST: Final = 50  # runs of a version that count


class RunOutcome(StrEnum):
    FINISHED = "finished"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    CORRECTED = "corrected"  # the person stepped in or took the turn back


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillRun:
    digest: str  # of the version
    turn: str
    at: float
    outcome: RunOutcome = RunOutcome.INTERRUPTED
    calls: int = 0
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionEffect:
    digest: str
    runs: int
    successes: int
    calls: float  # median of the runs that ended
    tokens: float
    outcomes: dict[str, int]
    last_at: float

    @property
    def success(self) -> float:
        return self.successes / self.runs if self.runs else 0.0


def subject_of(name: str) -> str:
    return f"{PREFIX}{name}"


def encoded(run: SkillRun) -> bytes:
    fields = {"digest": run.digest, "outcome": run.outcome.value, "calls": run.calls, "tokens": run.tokens}
    return json.dumps(fields, separators=(",", ":")).encode()


def runs_of(changes: Iterable[Change]) -> list[SkillRun]:
    """Return the runs, oldest first. A later change about the same turn and version replaces its outcome."""
    found: dict[tuple[str, str], SkillRun] = {}
    for change in changes:
        try:
            fields = json.loads(change.payload)
            run = SkillRun(
                digest=fields["digest"],
                turn=change.turn,
                at=change.at,
                outcome=RunOutcome(fields["outcome"]),
                calls=fields["calls"],
                tokens=fields["tokens"],
            )
        except (ValueError, KeyError, TypeError):
            continue
        before = found.get((run.turn, run.digest))
        if before is not None:
            run = replace(
                run, at=before.at, calls=max(run.calls, before.calls), tokens=max(run.tokens, before.tokens)
            )
        found[run.turn, run.digest] = run
    return list(found.values())


def effect_of(runs: Sequence[SkillRun], digest: str) -> VersionEffect:
    from statistics import median  # noqa: PLC0415 - 0.2 MB, which an idle daemon does not need

    mine = [run for run in runs if run.digest == digest][-LATEST:]
    ended = [run for run in mine if run.outcome is not RunOutcome.INTERRUPTED]
    outcomes = {outcome.value: sum(run.outcome is outcome for run in mine) for outcome in RunOutcome}
    return VersionEffect(
        digest=digest,
        runs=len(ended),
        successes=outcomes[RunOutcome.FINISHED],
        calls=median([run.calls for run in ended]) if ended else 0.0,
        tokens=median([run.tokens for run in ended]) if ended else 0.0,
        outcomes=outcomes,
        last_at=max((run.at for run in mine), default=0.0),
    )


def is_worse(new: VersionEffect, old: VersionEffect, min_runs: int = MIN_RUNS) -> bool:
    """Return whether a version is clearly worse than the one before. Interrupted runs do not count.

    Worse is: its share of successes is lower by LESS_SUCCESS; or it is not higher, and both calls and tokens have at
    least MORE_COST times the median.
    """
    if new.runs < min_runs or old.runs < min_runs:
        return False
    if old.success - new.success >= LESS_SUCCESS:
        return True
    dearer = new.calls >= MORE_COST * max(old.calls, 1) and new.tokens >= MORE_COST * max(old.tokens, 1)
    return new.success <= old.success and dearer
