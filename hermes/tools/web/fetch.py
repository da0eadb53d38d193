"""Fetch one document from the web, follow redirects and convert it to text.

Rules:
- The guard checks the URL of every redirect, and only its resolver and sockets are used. Proxies of the environment
  and cookies are not used.
- Size, time and number of redirects are limited. No document is decompressed or parsed in the daemon's process.
- Every failure raises a ToolError.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hermes.domain.process.sandbox_launch import Box
from hermes.domain.values import dataclass
from hermes.sandbox.box import start
from hermes.tools.tool import ToolError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from aiohttp import ClientResponse, ClientSession
    from yarl import URL

    from hermes.tools.web.address_guard import AddressGuard

T = TypeVar("T")
_MB = 1 << 20
_REDIRECTS = (301, 302, 303, 307, 308)
_HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; Hermes)",
    "Accept": "text/html,application/xhtml+xml,text/markdown,text/plain,application/json,application/pdf,*/*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
    "Accept-Language": "en,*;q=0.5",
}
_PACKAGES = str(Path(__file__).parents[3])


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchLimits:
    body_bytes: int = 5 * _MB
    total_s: float = 30.0
    redirects: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    url: str  # after redirects
    status: int
    reason: str
    kind: str
    title: str
    text: str


class Workers:
    """Limited number of processes that parse documents. Waiting counts towards the fetch's timeout."""

    def __init__(self, max_at_once: int, box: Callable[[], Box] | None = None) -> None:
        """`box` creates a worker's sandbox and blocks. None: workers run without a sandbox."""
        self._slots = asyncio.Semaphore(max_at_once)
        self._box = box

    async def read(self, job: bytes) -> dict[str, str]:
        async with self._slots:
            return await _worked(job, None if self._box is None else await asyncio.to_thread(self._box))


async def fetch(url: str, guard: AddressGuard, limits: FetchLimits, workers: Workers) -> Fetched:
    with _translated(limits):
        async with asyncio.timeout(limits.total_s):
            return await _fetched(url, guard, limits, workers)


@contextmanager
def _translated(limits: FetchLimits, what: str = "the page") -> Iterator[None]:
    """Translate errors of a fetch to ToolErrors."""
    from aiohttp import ClientError, InvalidURL  # noqa: PLC0415 - slow, and only needed when something is fetched

    try:
        yield
    except TimeoutError as error:
        raise ToolError(
            f"The fetch timed out after {limits.total_s:g} s: the server or the document is too slow."
        ) from error
    except InvalidURL as error:
        raise ToolError("The URL is not valid.") from error
    except (ClientError, OSError, ValueError) as error:
        detail = str(error) or type(error).__name__
        raise ToolError(f"Could not fetch {what}: {detail[:300]}") from error


async def download(url: str, guard: AddressGuard, limits: FetchLimits) -> tuple[bytes, str]:
    """Return the body and the Content-Type of a file. Raises ToolError."""

    async def use(response: ClientResponse) -> tuple[bytes, str]:
        if response.status != 200:
            raise ToolError(f"the server answered {response.status}")
        if response.headers.get("Content-Encoding", "identity") != "identity":
            raise ToolError("the server sent it compressed")
        return await _body(response, limits.body_bytes), response.headers.get("Content-Type", "")

    with _translated(limits):
        async with asyncio.timeout(limits.total_s):
            return await _visit(url, guard, limits, use, {"Accept": "*/*", "Accept-Encoding": "identity"})


async def call_api(
    url: str,
    guard: AddressGuard,
    limits: FetchLimits,
    *,
    fields: Mapping[str, Any],
    post: bool,
    headers: Mapping[str, str],
) -> tuple[int, bytes]:
    """Send one request to an API and return its status and body. Redirects are not followed. Raises ToolError."""
    about = {"Accept": "application/json", "Accept-Encoding": "identity", **headers}
    with _translated(limits, "the answer"):
        async with asyncio.timeout(limits.total_s), _session(guard) as session:
            sent: dict[str, Any] = {"json": fields} if post else {"params": fields}
            method, target = "POST" if post else "GET", guard.url(url)
            async with session.request(method, target, allow_redirects=False, headers=about, **sent) as response:
                if response.headers.get("Content-Encoding", "identity") != "identity":
                    raise ToolError("The server sent the answer compressed.")
                return response.status, await _body(response, limits.body_bytes)


async def document_text(body: bytes, content_type: str, *, max_bytes: int, workers: Workers) -> str:
    """Return the text of a document. Raises ToolError if it has none."""
    about = {"url": "", "content_type": content_type, "encoding": "", "max_bytes": max_bytes}
    answer = await workers.read(json.dumps(about).encode() + b"\n" + body)
    if problem := answer.get("problem"):
        raise ToolError(str(problem))
    return answer["text"]


async def _fetched(text: str, guard: AddressGuard, limits: FetchLimits, workers: Workers) -> Fetched:
    async def use(response: ClientResponse) -> Fetched:
        return await _read(response, await _body(response, limits.body_bytes), limits, workers)

    return await _visit(text, guard, limits, use)


async def _visit(
    text: str,
    guard: AddressGuard,
    limits: FetchLimits,
    use: Callable[[ClientResponse], Awaitable[T]],
    headers: Mapping[str, str] | None = None,
) -> T:
    """Follow redirects, each checked by the guard, and use the last response."""
    url = guard.url(text)
    async with _session(guard) as session:
        for _ in range(limits.redirects + 1):
            async with session.get(url, allow_redirects=False, headers=headers) as response:
                target = response.headers.get("Location", "") if response.status in _REDIRECTS else ""
                if not target:
                    return await use(response)
                url = guard.url(_joined(url, target))
    raise ToolError(f"The page has more than {limits.redirects} redirects; the last one leads to {url}.")


@asynccontextmanager
async def _session(guard: AddressGuard) -> AsyncIterator[ClientSession]:
    import aiohttp  # noqa: PLC0415 - as above

    from hermes.tools.web.address_guard import GuardedResolver  # noqa: PLC0415

    connector = aiohttp.TCPConnector(
        resolver=GuardedResolver(guard), socket_factory=guard.socket, use_dns_cache=False, force_close=True
    )
    async with aiohttp.ClientSession(
        connector=connector,
        headers=_HEADERS,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None, connect=10),
        auto_decompress=False,
        trust_env=False,
    ) as session:
        yield session


def _joined(url: URL, target: str) -> str:
    from urllib.parse import urljoin  # noqa: PLC0415

    return urljoin(str(url), target.strip().replace(" ", "%20"))


async def _body(response: ClientResponse, most: int) -> bytes:
    if (response.content_length or 0) > most:
        raise ToolError(f"The document is larger than {most / _MB:g} MB.")
    parts: list[bytes] = []
    room = most
    async for part in response.content.iter_any():
        room -= len(part)
        if room < 0:
            raise ToolError(f"The document is larger than {most / _MB:g} MB.")
        parts.append(part)
    return b"".join(parts)


async def _read(response: ClientResponse, body: bytes, limits: FetchLimits, workers: Workers) -> Fetched:
    about = {
        "url": str(response.url),
        "content_type": response.headers.get("Content-Type", ""),
        "encoding": response.headers.get("Content-Encoding", ""),
        "max_bytes": limits.body_bytes,
    }
    answer = {"kind": "text", "text": ""}
    if body:
        answer = await workers.read(json.dumps(about).encode() + b"\n" + body)
    if problem := answer.get("problem"):
        raise ToolError(f"{response.url} was fetched but cannot be shown: {problem}.")
    return Fetched(
        url=str(response.url),
        status=response.status,
        reason=response.reason or "",
        kind=answer["kind"],
        title=answer.get("title", ""),
        text=answer["text"],
    )


async def _worked(job: bytes, box: Box | None) -> dict[str, str]:
    program = (sys.executable, "-Ps", "-m", "hermes.tools.web.worker")  # nothing is imported from the current folder
    environ = {"PYTHONPATH": _PACKAGES, "PYTHONDONTWRITEBYTECODE": "1", "PATH": os.defpath}
    process = await start(box, program, environ=environ, stdin=PIPE, stdout=PIPE)
    try:
        output, _ = await process.communicate(job)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    try:
        answer: dict[str, str] = json.loads(output)
    except ValueError:
        answer = {"problem": "reading it takes too much time or memory"}
    return answer
