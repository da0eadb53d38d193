"""Progress bar of a long command, on a terminal only. It is drawn on stderr and removed at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

Progress: TypeAlias = Callable[[str, int, int], None]  # (step, done, in all; 0: not known)


@contextmanager
def progress_bar(first: str, *, in_bytes: bool = True) -> Iterator[tuple[Progress, Callable[[], None]]]:
    """Yield a function that reports progress, and one that removes the bar for a question."""
    if not sys.stderr.isatty():
        yield lambda _what, _done, _total: None, lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    sizes: tuple[ProgressColumn, ...] = (DownloadColumn(),) if in_bytes else ()
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[percent]}"), *sizes)
    with Bars(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(first, total=None, percent="")

        def report(what: str, done: int, total: int) -> None:
            percent = f"{min(100, 100 * done // total)} %" if total else ""
            bars.update(task, description=what, completed=done, total=total or None, percent=percent)

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
