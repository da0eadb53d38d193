"""Report of an unclean end of the previous daemon, added to "no daemon runs".

It reads the store without the lock of the home, so that a starting daemon is not blocked.
"""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, cast

from hermes.cli.output import count
from hermes.cli.pid import has_ended, watch_process
from hermes.domain.errors import HermesError, NotRunningError
from hermes.domain.text.listing import some

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hermes.config.home import Home
    from hermes.domain.read.reader import Reader


@contextmanager
def explaining_last_end(home: Home) -> Iterator[None]:
    """Add the unclean end of the last daemon to a NotRunningError raised inside."""
    try:
        yield
    except NotRunningError as error:
        if not (how := last_end(home)):
            raise
        raise NotRunningError(f"{error}: {how}") from error


def last_end(home: Home) -> str:
    """Return how the last daemon ended; empty after a clean stop, or if it is not known."""
    from hermes.config.home import holder

    with watch_process(holder(home)) as process:
        if not has_ended(process):  # it is starting or stopping
            return ""
    if not (home.store_dir / "data.mdb").exists():
        return ""
    from hermes.storage.lmdb_reader import open_reader
    from hermes.supervision.boot import read_boot

    with suppress(HermesError, OSError), open_reader(home.store_dir) as reader:
        if reader is not None:
            boot = read_boot(cast("Reader", reader), time.time())
            return "" if boot.first or boot.stopped else _unclean(list(reader.pending()))
    return ""


def _unclean(pending: list[str]) -> str:
    how = "the last daemon was killed or crashed. Everything that it acknowledged is stored"
    if not pending:
        return how
    resumes = "resumes" if len(pending) == 1 else "resume"
    return f"{how}. {count(len(pending), 'session')} with open work {resumes} at the next start: {some(pending)}"
