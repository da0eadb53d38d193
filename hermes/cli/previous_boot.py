"""How the last daemon ended, for whoever finds none.

It is read from the store without the home's lock: a look must not be in the way of a daemon that starts.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, cast

from hermes.cli.output import count
from hermes.cli.pid import has_ended, process_of
from hermes.domain.errors import HermesError, NotRunningError
from hermes.domain.listing import some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.config.home import Home
    from hermes.domain.read.reader import Reader


@contextmanager
def telling_how_it_ended(home: Home) -> Iterator[None]:
    """Whoever is told that no daemon runs is also told when the last one was killed, or crashed."""
    try:
        yield
    except NotRunningError as error:
        if not (how := last_end(home)):
            raise
        raise NotRunningError(f"{error}: {how}") from error


def last_end(home: Home) -> str:
    """Empty: it stopped in order, or nobody can say."""
    from hermes.config.home import holder

    with process_of(holder(home)) as process:
        if not has_ended(process):  # it starts, or has not come to its end yet
            return ""
    if not (home.store_dir / "data.mdb").exists():
        return ""
    from hermes.storage.lmdb_reader import open_reader
    from hermes.supervision.boot import read_boot

    with suppress(HermesError, OSError), open_reader(home.store_dir) as reader:  # what is broken, others complain of
        if reader is not None:
            boot = read_boot(cast("Reader", reader), time.time())
            return "" if boot.first or boot.stopped else _unclean(list(reader.pending()))
    return ""


def _unclean(pending: list[str]) -> str:
    how = "the last one did not stop in order (it was killed, or crashed). Nothing that it acknowledged is lost"
    if not pending:
        return how
    go_on = "goes on" if len(pending) == 1 else "go on"
    return f"{how}; {count(len(pending), 'session')} with open work {go_on} at the next start: {some(pending)}"
