"""Cost of the sandbox's network proxy: CPU time per MB and per connection, compared with direct transfers.

Another process is both client and server. Its transfers alternate between a direct connection and the proxy in this
process, so that a slow phase of the machine affects both. The tunnels carry a real ClientHello and then plain bytes:
TLS would add cost to the two ends, but not to the proxy.
"""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import statistics
import sys
import threading
import time
from contextlib import suppress

from hermes.sandbox.network.proxy import GuardProxy, NetworkPolicy
from hermes.sandbox.network.proxy_client import ProxyLimits

HOST = "site.test"
ROUNDS = 7
TRANSFER_MB = 64
CONNECTIONS = 200
MB = 1 << 20


def run() -> dict[str, float]:
    return asyncio.run(_measure())


async def _measure() -> dict[str, float]:
    peer = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "bench.proxy", "peer"), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    orders, answers = peer.stdin, peer.stdout
    assert orders is not None
    assert answers is not None
    server_port = int(await answers.readline())
    proxy = GuardProxy(resolve=_resolve, refusal=lambda _: "", limits=ProxyLimits(accept_pause_s=0))
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    proxy_port = listener.getsockname()[1]
    policy = NetworkPolicy(allowed_hosts=frozenset({HOST}), ports=frozenset({server_port}))
    serving = await proxy.serve(listener, policy=policy, report=lambda _: None)

    async def job(port: int, count: int, size: int) -> tuple[float, float, float]:
        """Return wall time, CPU time of this process, and CPU time of the peer."""
        ours = time.process_time()
        orders.write(json.dumps([port, count, size]).encode() + b"\n")
        wall, theirs = json.loads(await answers.readline())
        return wall, time.process_time() - ours, theirs

    figures: dict[str, list[float]] = {}
    try:
        await job(proxy_port, 10, MB)  # imports and buffers
        for _ in range(ROUNDS):
            direct = await job(0, 1, TRANSFER_MB * MB)
            through = await job(proxy_port, 1, TRANSFER_MB * MB)
            direct_short = await job(0, CONNECTIONS, 1)
            short = await job(proxy_port, CONNECTIONS, 1)
            for name, value in {
                "cpu_ms_per_mb": 1e3 * through[1] / TRANSFER_MB,
                "mb_per_s": TRANSFER_MB / through[0],
                "direct_mb_per_s": TRANSFER_MB / direct[0],
                "cpu_us_per_connection": 1e6 * short[1] / CONNECTIONS,
                "connection_ms": 1e3 * short[0] / CONNECTIONS,
                "direct_connection_ms": 1e3 * direct_short[0] / CONNECTIONS,
                "cpu_to_direct": through[1] / direct[2],  # CPU time of both ends
                "connection_cpu_to_direct": short[1] / direct_short[2],
            }.items():
                figures.setdefault(name, []).append(value)
    finally:
        await serving.close()
        orders.close()
        await peer.wait()
    return {name: statistics.median(values) for name, values in figures.items()}


async def _resolve(_: str) -> list[str]:
    return ["127.0.0.1"]


def _peer() -> None:
    """Serve bytes on loopback and fetch them, as requested by lines on standard input."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    threading.Thread(target=_serve, args=(listener,), daemon=True).start()
    server_port = listener.getsockname()[1]
    print(server_port, flush=True)
    hello = _hello()
    for line in sys.stdin:
        port, count, size = json.loads(line)
        wall, cpu = time.perf_counter(), time.process_time()
        for _ in range(count):
            _fetch(port, server_port, hello, size)
        print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]), flush=True)


def _serve(listener: socket.socket) -> None:
    block = bytes(256 * 1024)
    while True:
        client, _ = listener.accept()
        with client:
            size = int.from_bytes(client.recv(65536)[-8:], "big")
            for start in range(0, size, len(block)):
                client.sendall(block[: size - start])


def _fetch(proxy_port: int, server_port: int, hello: bytes, size: int) -> None:
    with socket.create_connection(("127.0.0.1", proxy_port or server_port)) as sock:
        if proxy_port:
            sock.sendall(f"CONNECT {HOST}:{server_port} HTTP/1.1\r\n\r\n".encode())
            assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")
        sock.sendall(hello + size.to_bytes(8, "big"))
        received, buffer = 0, bytearray(256 * 1024)
        while part := sock.recv_into(buffer):
            received += part
        assert received == size


def _hello() -> bytes:
    context, outbox = ssl.create_default_context(), ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outbox, server_hostname=HOST).do_handshake()
    return outbox.read()


if __name__ == "__main__":
    if sys.argv[1:] == ["peer"]:
        _peer()
    else:
        print(json.dumps(run(), indent=2))
