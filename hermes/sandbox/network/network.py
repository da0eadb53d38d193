"""Network of sandboxes: a proxy on the loopback interface of each sandbox that may have one.

The daemon serves the proxy: it applies the host list and the address guard, and knows which conversation calls.
A sandbox that is left running in the background keeps its proxy until its init ends.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from loguru import logger

from hermes.sandbox.init import find_init
from hermes.sandbox.network.host_grants import granted_hosts
from hermes.sandbox.network.proxy import GuardProxy, NetworkPolicy, Report, Serving
from hermes.sandbox.network.proxy_event import ProxyEvent
from hermes.sandbox.network.proxy_listener import Listeners
from hermes.sandbox.network.refusal_log import RefusalLog

_INIT_S: Final = 5.0  # until bubblewrap has started its init


class SandboxNetwork:
    """Proxies of all sandboxes. Use it on the event loop. `hosts` may be reached by every conversation."""

    def __init__(self, hosts: frozenset[str], *, proxy: GuardProxy | None = None) -> None:
        self.hosts = hosts
        self._proxy = proxy or GuardProxy()
        self._listeners = Listeners()
        self._followed: set[asyncio.Task[None]] = set()

    async def attach(self, init: int, *, permitted: Iterable[str] = ()) -> ProxyAttachment:
        """Serve the proxy in the sandbox that `init` leads. `permitted` are granted rules. Raises OSError."""
        listener = await self._listeners.open(init)
        log = RefusalLog()
        policy = NetworkPolicy(allowed_hosts=self.hosts | granted_hosts(permitted))
        return ProxyAttachment(log, await self._proxy.serve(listener, policy=policy, report=_reporter(log)))

    async def follow(self, init: int, *, permitted: Iterable[str] = ()) -> None:
        """Serve the proxy in a background sandbox until its init ends. Raises OSError."""
        pidfd = os.pidfd_open(init)
        try:
            attachment = await self.attach(init, permitted=permitted)
        except BaseException:
            os.close(pidfd)
            raise
        task = asyncio.create_task(_serve_until_end(pidfd, attachment))
        self._followed.add(task)
        task.add_done_callback(self._followed.discard)

    async def follow_monitor(self, monitor: int, *, permitted: Iterable[str] = ()) -> None:
        """Serve the proxy in a background sandbox, by the pid of its monitor. Does nothing if it has no init."""
        init = await asyncio.to_thread(find_init, monitor, _INIT_S)
        if init is not None:
            await self.follow(init, permitted=permitted)

    async def close(self) -> None:
        for task in tuple(self._followed):
            task.cancel()
        if self._followed:
            await asyncio.wait(self._followed)
        await self._listeners.close()


class ProxyAttachment:
    """Running proxy of one sandbox."""

    def __init__(self, log: RefusalLog, serving: Serving) -> None:
        self._log = log
        self._serving = serving

    def note(self) -> str:
        """Return the note about refused hosts for the model; empty if there are none."""
        return self._log.note()

    async def close(self) -> None:
        await self._serving.close()


def _reporter(log: RefusalLog) -> Report:
    def report(event: ProxyEvent) -> None:
        log.add(event)
        logger.debug("sandbox proxy: {} {}:{} {}", event.kind, event.host, event.port, event.reason or "")

    return report


async def _serve_until_end(pidfd: int, attachment: ProxyAttachment) -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(pidfd, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(pidfd)
        os.close(pidfd)
        with suppress(OSError):
            await attachment.close()
