"""How the life before this one ended, and whether this is a boot loop. Pure; the store keeps the facts.

A daemon that is killed or crashes leaves no mark of a clean stop. Several such starts within a minute are a loop:
what was open is then held instead of taken up, since taking it up may be what kills the daemon.
"""

from __future__ import annotations

import json

from hermes.domain.operations import PutFact
from hermes.domain.read.reader import Reader
from hermes.domain.values import dataclass
from hermes.ports.storage import Transaction

STOPPED = "daemon.stopped"  # the fact that says the last daemon stopped cleanly, and why
STARTS = "daemon.starts"  # when daemons started after one that did not stop cleanly
LOOP_WITHIN_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot:
    first: bool  # nobody has used this store before
    stopped: str  # why the last daemon stopped, if it did so cleanly
    starts: tuple[float, ...]  # after an unclean end, within the last minute, this one included

    def is_loop(self, most: int) -> bool:
        """`most` such starts are still no loop; 0: there are no loops."""
        return 0 < most < len(self.starts)


def read_boot(reader: Reader, now: float) -> Boot:
    stopped, starts = reader.fact(STOPPED), reader.fact(STARTS)
    first = stopped is None and starts is None
    earlier = tuple(at for at in json.loads(starts or b"[]") if 0 <= now - at < LOOP_WITHIN_S)
    unclean = () if stopped is not None or first else (now,)
    return Boot(first=first, stopped=(stopped or b"").decode(), starts=(*earlier, *unclean))


def started(boot: Boot) -> Transaction:
    """From now on an end without a word is a crash."""
    return (PutFact(name=STOPPED, value=None), PutFact(name=STARTS, value=json.dumps(boot.starts).encode()))


def unstarted(boot: Boot) -> Transaction:
    """A start that was refused, for a port that is taken, say, is no life: what was known before it stays so."""
    starts = boot.starts if boot.stopped or boot.first else boot.starts[:-1]
    return (
        PutFact(name=STOPPED, value=boot.stopped.encode() or None),
        PutFact(name=STARTS, value=None if boot.first else json.dumps(starts).encode()),
    )


def stopped(reason: str) -> Transaction:
    return (PutFact(name=STOPPED, value=reason.encode()),)
