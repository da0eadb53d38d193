"""Boot record: how the previous boot ended, and detection of a boot loop. Pure; the store keeps the facts.

A daemon that crashes or is killed writes no clean marker. Several such starts within a minute are a boot loop: open
work is then held instead of resumed, since resuming it may be what crashes the daemon.
"""

from __future__ import annotations

import json

from hermes.domain.operations import PutFact
from hermes.domain.read.reader import Reader
from hermes.domain.values import dataclass
from hermes.ports.storage import Transaction

STOPPED = "daemon.stopped"  # clean marker: why the last daemon stopped
STARTS = "daemon.starts"  # times of starts after an unclean end
LOOP_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    first: bool  # the store is new
    stopped: str  # reason of the last clean stop; empty after an unclean end
    starts: tuple[float, ...]  # starts after an unclean end within the last minute, this one included

    def is_loop(self, most: int) -> bool:
        """Return whether there were more than `most` such starts; 0 turns the detection off."""
        return 0 < most < len(self.starts)


def read_boot(reader: Reader, now: float) -> Boot:
    stopped, starts = reader.fact(STOPPED), reader.fact(STARTS)
    first = stopped is None and starts is None
    earlier = tuple(at for at in json.loads(starts or b"[]") if 0 <= now - at < LOOP_WITHIN_S)
    unclean = () if stopped is not None or first else (now,)
    return Boot(first=first, stopped=(stopped or b"").decode(), starts=(*earlier, *unclean))


def started(boot: Boot) -> Transaction:
    """Remove the clean marker: without a new one, the end of this boot is a crash."""
    return (PutFact(name=STOPPED, value=None), PutFact(name=STARTS, value=json.dumps(boot.starts).encode()))


def unstarted(boot: Boot) -> Transaction:
    """Restore the record after a refused start, for a port in use say: it does not count as a boot."""
    starts = boot.starts if boot.stopped or boot.first else boot.starts[:-1]
    return (
        PutFact(name=STOPPED, value=boot.stopped.encode() or None),
        PutFact(name=STARTS, value=None if boot.first else json.dumps(starts).encode()),
    )


def stopped(reason: str) -> Transaction:
    """Write the clean marker."""
    return (PutFact(name=STOPPED, value=reason.encode()),)
