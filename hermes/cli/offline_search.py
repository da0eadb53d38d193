"""Search of the messages without a daemon, under the lock of the home."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from hermes.config.home import check_store, has_store, lock
from hermes.domain.errors import HomeError

if TYPE_CHECKING:
    from hermes.cli.progress import Progress
    from hermes.config.home import Home
    from hermes.ports.search import SearchFilter
    from hermes.services.search import SearchService


_REPORT_EVERY_S = 0.2


def search_store(
    home: Home, query: str, *, limit: int, only: SearchFilter, progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """Return hits as the daemon does. Brings the index up to date first."""
    from hermes.adapters.http import presentation
    from hermes.services.search import SearchService
    from hermes.storage.lmdb_engine import LmdbEngine

    if not has_store(home):
        raise HomeError(f"nothing is stored in {home.data_dir} yet")
    check_store(home)
    with lock(home):
        engine = LmdbEngine.open(home.store_dir, made_before=True)

        async def search() -> dict[str, Any]:
            service = SearchService(home.data_dir / "index", engine=engine, wait_s=60.0)
            reports = asyncio.create_task(_report(service, progress))
            try:
                found = await service.search(query, limit=limit, only=only)
                return presentation.findings(query, [presentation.hit(each) for each in found.hits], found.index)
            finally:
                reports.cancel()
                await service.stop()

        try:
            return asyncio.run(search())
        finally:
            engine.close()


async def _report(service: SearchService, progress: Progress) -> None:
    """Report the progress of the index until cancelled."""
    while True:
        if (index := service.progress()) is not None and index.building:
            progress("indexing", index.indexed, index.total)
        await asyncio.sleep(_REPORT_EVERY_S)
