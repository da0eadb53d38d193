"""Proxy through which the programs in a sandbox reach the network.

A sandbox has its own network namespace without any route. A helper opens a listening socket on its loopback and
passes that socket to the daemon, which serves this proxy on it.

Rules:
- CONNECT and absolute-form http only, to hosts on the policy's list or allowed by its `ask`, on the policy's ports.
- Hosts are names, never addresses. The daemon resolves them; every address must be public, or none is used; the
  connection goes to an address that was judged.
- A tunnel carries TLS, and its server name (SNI), if there is one, is the host of CONNECT. TLS is not opened, so a
  client can still ask a server of several hosts for another one inside. The same holds for Encrypted Client Hello.
- A plain connection carries one request, with its Host header set from the address.
- Time, memory and the number of connections are bounded. Clients that exceed a bound get a refusal.

The proxy connects directly. Like `web_fetch`, it does not use a proxy of the daemon's environment
(hermes/system/proxy_environment.py). That proxy would resolve the name itself, so no address could be checked.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from ipaddress import ip_address
from typing import TypeAlias

from loguru import logger

from hermes.domain.values import dataclass
from hermes.sandbox.network.host_list import is_listed
from hermes.sandbox.network.proxy_client import DEFAULT_LIMITS, ProxyClient, ProxyLimits, ProxyRules
from hermes.sandbox.network.proxy_event import EventKind, ProxyEvent, Reason, refusal_answer
from hermes.sandbox.network.proxy_request import MAX_HEAD_BYTES, RequestRefusedError
from hermes.system.public_address import Refusal, Resolve, public_only, system_resolve

Ask: TypeAlias = Callable[[str], Awaitable[bool]]  # whether a host may be reached that is not on the list
Report: TypeAlias = Callable[[ProxyEvent], None]

PORTS = frozenset({443, 80})

_MAX_LOOKUPS_AT_ONCE = 4  # each holds a thread of the event loop's pool
_MAX_LOOKUPS = 64
_ACCEPT_RETRY_S = 1.0
_REFUSAL_PAUSE_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPolicy:
    """Hosts and ports that one sandbox may reach."""

    allowed_hosts: frozenset[str]  # as of host_list.allowed_hosts
    ports: frozenset[int] = PORTS
    ask: Ask | None = None  # None: a host that is not on the list is refused


class GuardProxy:
    """The daemon's proxy: serves the listening sockets of any number of sandboxes within common limits."""

    def __init__(
        self,
        *,
        resolve: Resolve = system_resolve,
        refusal: Refusal = public_only,
        limits: ProxyLimits = DEFAULT_LIMITS,
    ) -> None:
        self.limits = limits
        self.clients = 0  # of all sandboxes
        self._resolve = resolve
        self._refusal = refusal
        self._lookups: dict[str, asyncio.Task[list[str]]] = {}
        self._lookup_slots = asyncio.Semaphore(_MAX_LOOKUPS_AT_ONCE)

    async def serve(self, listener: socket.socket, *, policy: NetworkPolicy, report: Report) -> Serving:
        """Serve a listening socket, which then belongs to the result. `report` is called on the event loop."""
        listener.setblocking(False)
        return Serving(self, listener, policy, report)

    async def lookup(self, host: str) -> list[str]:
        """Return a host's addresses. Raises OSError if it has none, RequestRefusedError if one is not public.

        Lookups of the same host are shared. One goes on when its client gives up: its thread is busy either way.
        """
        task = self._lookups.get(host)
        if task is None:
            if len(self._lookups) >= _MAX_LOOKUPS:
                raise OSError("too many lookups at the same time")
            task = self._lookups[host] = asyncio.create_task(self._judged_addresses(host))
            task.add_done_callback(lambda done: self._forget(host, done))
        return await asyncio.shield(task)

    async def _judged_addresses(self, host: str) -> list[str]:
        async with self._lookup_slots:
            found = [ip_address(text) for text in await self._resolve(host)]
        if any(self._refusal(address) for address in found):
            raise RequestRefusedError(Reason.NOT_PUBLIC)
        return [str(address) for address in found]

    def _forget(self, host: str, done: asyncio.Task[list[str]]) -> None:
        del self._lookups[host]
        if not done.cancelled():
            done.exception()  # mark as retrieved: its clients have it, if any are left


class Serving:
    """One sandbox's listening socket while it is served."""

    def __init__(self, proxy: GuardProxy, listener: socket.socket, policy: NetworkPolicy, report: Report) -> None:
        self._proxy = proxy
        self._listener = listener
        self._policy = policy
        self._report = report
        self._rules = ProxyRules(
            ports=policy.ports, may_reach=self._may_reach, lookup=proxy.lookup, limits=proxy.limits
        )
        self._clients: set[asyncio.Task[None]] = set()
        self._asked: dict[str, asyncio.Task[bool]] = {}
        self._accepting = asyncio.create_task(self._accept_clients())

    async def close(self) -> None:
        """Close the listening socket and all connections, and wait until they have ended."""
        tasks = [self._accepting, *self._clients, *self._asked.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._listener.close()

    async def _accept_clients(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(self._listener)
            except OSError as error:  # out of descriptors or memory, mostly: clients wait in the backlog
                logger.warning("sandbox proxy: could not accept a connection: {}", error)
                await asyncio.sleep(_ACCEPT_RETRY_S)
                continue
            limits = self._proxy.limits
            if len(self._clients) >= limits.clients_per_sandbox or self._proxy.clients >= limits.clients:
                self._refuse(client)
                await asyncio.sleep(_REFUSAL_PAUSE_S)
                continue
            self._start(client)
            await asyncio.sleep(limits.accept_pause_s)

    def _refuse(self, client: socket.socket) -> None:
        self._report(ProxyEvent(kind=EventKind.REFUSED, reason=Reason.TOO_MANY_CLIENTS))
        with client, suppress(OSError):
            client.send(refusal_answer(Reason.TOO_MANY_CLIENTS))
            client.shutdown(socket.SHUT_WR)
            client.recv(MAX_HEAD_BYTES)  # closing over unread bytes would reset the connection

    def _start(self, client: socket.socket) -> None:
        self._proxy.clients += 1
        task = asyncio.create_task(ProxyClient(client, self._rules, self._report).serve())
        self._clients.add(task)
        task.add_done_callback(lambda ended: self._end(client, ended))

    def _end(self, client: socket.socket, task: asyncio.Task[None]) -> None:
        client.close()  # here, because a task that is cancelled early never runs
        self._proxy.clients -= 1
        self._clients.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.opt(exception=error).error("sandbox proxy: a connection failed")

    async def _may_reach(self, host: str) -> bool:
        if is_listed(host, self._policy.allowed_hosts):
            return True
        if self._policy.ask is None:
            return False
        task = self._asked.get(host)
        if task is None:
            if len(self._asked) >= self._proxy.limits.asked_hosts:
                return False
            task = self._asked[host] = asyncio.create_task(self._ask(self._policy.ask, host))
        return await asyncio.shield(task)

    async def _ask(self, ask: Ask, host: str) -> bool:
        self._report(ProxyEvent(kind=EventKind.ASKED, host=host))
        return await ask(host)
