"""Progress bar of a long command, on a terminal only. It is drawn on stderr and removed at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

Progress: TypeAlias = Callable[[str, int, int], None]  # (step, bytes done, bytes in all; 0: not known)


@contextmanager
def progress_bar(first: str) -> Iterator[tuple[Progress, Callable[[], None]]]:
    """Yield a function that reports progress, and one that removes the bar for a question."""
    if not sys.stderr.isatty():
        yield lambda _what, _done, _total: None, lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(first, total=None)

        def report(what: str, done: int, total: int) -> None:
            bars.update(task, description=what, completed=done, total=total or None)

        yield report, bars.stop


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a moving bar and the elapsed time while something runs that does not report its progress."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        bars.add_task(what, total=None)
        yield
