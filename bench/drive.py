"""Load on a server: sessions that wait for each answer (closed loop), or requests at a fixed rate (open loop)."""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.harness import Served, cpu_s
from bench.wire import Connection, Exchange, Request, turn

_texts = itertools.count()


def text(wish: str = "") -> str:
    """Return a message that was never sent before: an equal one could be a retry. `wish`: see bench/model.py."""
    return f"message {next(_texts)} of {time.time_ns()}" + (f" [{wish}]" if wish else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    cpu_ms: float  # processor time of the server for one request
    per_s: float
    exchanges: Sequence[Exchange]

    @property
    def p50_ms(self) -> float:
        return statistics.median(each.took_s for each in self.exchanges) * 1000

    @property
    def p99_ms(self) -> float:
        return sorted(each.took_s for each in self.exchanges)[int(len(self.exchanges) * 0.99)] * 1000

    @property
    def first_p50_ms(self) -> float:
        return statistics.median(each.first_s for each in self.exchanges) * 1000


async def closed_loop(
    server: Served,
    names: Sequence[str],
    *,
    turns: int = 1,
    wish: str = "",
    stream: bool = False,
    workers: int = 0,
    request: Request | None = None,
) -> Load:
    """Run turns in each session, all together or as many as there are workers. Every answer must be a 200."""
    make = request or turn(server.key, stream=stream)
    waiting = iter(names)
    exchanges: list[Exchange] = []

    async def work() -> None:
        connection = await Connection.open(server.address)
        for name in waiting:
            for _ in range(turns):
                if not connection.is_open:
                    connection = await Connection.open(server.address)
                exchange = await connection.send(make(name, text(wish)))
                assert exchange.status == 200, (exchange.status, exchange.body[:500])
                exchanges.append(exchange)
        connection.close()

    cpu, began = cpu_s(server.pid), time.perf_counter()
    await asyncio.gather(*(work() for _ in range(workers or len(names))))
    took_s = time.perf_counter() - began
    await asyncio.sleep(0.05)  # the last turn finishes its remaining work
    return Load(
        cpu_ms=(cpu_s(server.pid) - cpu) / len(exchanges) * 1000, per_s=len(exchanges) / took_s, exchanges=exchanges
    )


async def open_loop(
    server: Served, names: Sequence[str], *, per_s: float, seconds: float, within_s: float, slots: int
) -> list[Exchange | None]:
    """Send requests at a fixed rate, whatever happens to them, over at most this many connections.

    A slot keeps its connection. After a refusal it rests for the answer's `Retry-After`, as client libraries do, and
    after a failed connection for a second. None: no slot was free, no answer within that time, or no connection.
    """
    request = turn(server.key)
    free: list[Connection | None] = [None] * slots
    loop = asyncio.get_running_loop()

    async def send(name: str) -> Exchange | None:
        if not free:
            return None
        connection, exchange = free.pop(), None
        try:
            async with asyncio.timeout(within_s):
                if connection is None or not connection.is_open:
                    connection = await Connection.open(server.address)
                exchange = await connection.send(request(name, text()))
        except (TimeoutError, OSError):
            if connection is not None:
                connection.close()  # the client gives up
        if exchange is not None and not exchange.retry_after_s:
            free.append(connection)
        else:
            loop.call_later(1.0 if exchange is None else exchange.retry_after_s, free.append, connection)
        return exchange

    tasks: list[asyncio.Task[Exchange | None]] = []
    began = loop.time()
    for number in range(int(per_s * seconds)):
        if (early := began + number / per_s - loop.time()) > 0:
            await asyncio.sleep(early)
        elif number % 50 == 0:
            await asyncio.sleep(0)
        tasks.append(asyncio.create_task(send(names[number % len(names)])))
    done = await asyncio.gather(*tasks)
    for each in free:
        if each is not None:
            each.close()
    return done
