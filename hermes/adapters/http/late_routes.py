"""Routes whose handlers are imported with the first request for one of them.

An idle daemon saves the memory of the handlers (docs/decisions/0034-idle-memory.md). The first request waits for the
import, some 20 ms.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Never

from aiohttp import web

from hermes.adapters.http.body import continued_later

if TYPE_CHECKING:
    from yarl import URL


class LateRoutes(web.AbstractResource):
    """Resource that finds requests in routes of its own.

    `load` imports the handlers, in a thread, and returns the function that makes the routes. `owns` limits the paths.
    """

    def __init__(
        self,
        load: Callable[[], Callable[[], Iterable[web.RouteDef]]],
        owns: Callable[[str], bool] = lambda _: True,
    ) -> None:
        super().__init__()
        self._load = load
        self._owns = owns
        self._router: web.UrlDispatcher | None = None
        self._loading = asyncio.Lock()

    async def resolve(self, request: web.Request) -> tuple[web.UrlMappingMatchInfo | None, set[str]]:
        if not self._owns(request.path):
            return None, set()
        found = await (self._router or await self._loaded()).resolve(request)
        if found.http_exception is None:
            return found, set()
        refusal = found.http_exception
        return None, refusal.allowed_methods if isinstance(refusal, web.HTTPMethodNotAllowed) else set()

    async def _loaded(self) -> web.UrlDispatcher:
        async with self._loading:
            if self._router is None:
                make = await asyncio.to_thread(self._load)
                router = web.UrlDispatcher()
                router.add_routes(map(continued_later, make()))
                self._router = router
                gc.freeze()  # keeps the modules out of garbage collections, as those of the start
        return self._router

    # ---------------------------------------------------------------- what aiohttp wants of a resource

    @property
    def canonical(self) -> str:
        return "/"

    def __len__(self) -> int:
        return 0

    def __iter__(self) -> Iterator[web.AbstractRoute]:
        return iter(())

    def raw_match(self, path: str) -> bool:
        return self._owns(path)

    def get_info(self) -> Any:
        return {"prefix": self.canonical}

    def url_for(self, **_: str) -> URL:
        raise NotImplementedError

    def add_prefix(self, prefix: str) -> Never:
        raise NotImplementedError
