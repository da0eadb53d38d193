"""Harness of the proxy's tests: loopback servers, names that resolve to them, and a proxy in front."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

import pytest

from hermes.sandbox.network.proxy import GuardProxy, NetworkPolicy, Serving
from hermes.sandbox.network.proxy_client import DEFAULT_LIMITS, ProxyLimits
from hermes.sandbox.network.proxy_event import EventKind, ProxyEvent, Reason
from hermes.system.public_address import Address, public_only

DEADLINE_S = 30.0
LOOPBACK = ip_address("127.0.0.1")
HOST = "site.test"
LISTED = frozenset(
    {HOST, "*.site.test", *(f"{name}.test" for name in ("mixed", "inner", "metadata", "gone", "closed"))}
)


def allow_loopback(address: Address) -> str:
    """Judge addresses as usual, but take 127.0.0.1 for a public one."""
    return "" if address == LOOPBACK else public_only(address)


class Names:
    """Resolver with fixed answers. An answer that is used up is followed by the next one."""

    def __init__(self) -> None:
        self.known: dict[str, list[list[str]]] = {HOST: [["127.0.0.1"]]}
        self.asked: list[str] = []

    async def resolve(self, host: str) -> Sequence[str]:
        self.asked.append(host)
        answers = self.known.get(host)
        if answers is None:
            raise OSError(f"{host} is unknown")
        return answers.pop(0) if len(answers) > 1 else answers[0]


class Proxied:
    """A served proxy, its events and its address."""

    def __init__(self, proxy: GuardProxy, serving: Serving, port: int, events: list[ProxyEvent]) -> None:
        self.proxy = proxy
        self.serving = serving
        self.port = port
        self.events = events

    @property
    def refused(self) -> list[Reason | None]:
        return [event.reason for event in self.events if event.kind is EventKind.REFUSED]

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def talk(self, data: bytes, *, end: bool = True) -> bytes:
        """Send bytes and return all that comes back, until the end or a reset."""
        reader, writer = await self.connect()
        received = b""
        try:
            writer.write(data)
            if end:
                writer.write_eof()
            async with asyncio.timeout(DEADLINE_S):
                while part := await reader.read(65536):
                    received += part
        except ConnectionError:
            pass
        finally:
            writer.close()
        return received

    async def run(self, *argv: str, **environ: str) -> tuple[int, str]:
        """Run a program with the proxy in its environment; its exit code and all its output."""
        address = f"http://127.0.0.1:{self.port}"
        proxies = {name: address for base in ("http_proxy", "https_proxy") for name in (base, base.upper())}
        process = await asyncio.create_subprocess_exec(
            *argv,
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LC_ALL": "C", **proxies, **environ},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        async with asyncio.timeout(DEADLINE_S):
            output, _ = await process.communicate()
        return process.returncode or 0, output.decode(errors="replace")


@asynccontextmanager
async def proxied(
    *,
    ports: Sequence[int],
    names: Names | None = None,
    limits: ProxyLimits = DEFAULT_LIMITS,
    allowed: frozenset[str] = LISTED,
    ask: Callable[[str], object] | None = None,
    proxy: GuardProxy | None = None,
) -> AsyncIterator[Proxied]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    port = listener.getsockname()[1]
    events: list[ProxyEvent] = []
    proxy = proxy or GuardProxy(resolve=(names or Names()).resolve, refusal=allow_loopback, limits=limits)
    policy = NetworkPolicy(allowed_hosts=allowed, ports=frozenset(ports), ask=ask)  # type: ignore[arg-type]
    serving = await proxy.serve(listener, policy=policy, report=events.append)
    try:
        yield Proxied(proxy, serving, port, events)
    finally:
        await serving.close()


@contextmanager
def web_server(handler: type[BaseHTTPRequestHandler], certificate: Path | None = None) -> Iterator[int]:
    """Serve HTTP, or HTTPS if there is a certificate, in threads on loopback; its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def needed(program: str) -> str:
    """Path of a program that a test cannot do without."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    return path


def self_signed(folder: Path) -> Path:
    """Certificate and key of `site.test`, in one file, which is its own authority."""
    file = folder / "site.pem"
    if not file.exists():
        made = subprocess.run(
            [
                *(needed("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"),
                *("-nodes", "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem"), "-days", "2"),
                *("-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST},DNS:*.{HOST}"),
            ],
            capture_output=True,
            check=False,
        )
        assert made.returncode == 0, made.stderr
        file.write_bytes((folder / "key.pem").read_bytes() + (folder / "cert.pem").read_bytes())
    return file


def hello_for(name: str | None) -> bytes:
    """ClientHello with this server name, as OpenSSL writes it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    outbox = ssl.MemoryBIO()
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), outbox, server_hostname=name).do_handshake()
    return outbox.read()


class AnswerServer:
    """A server that answers each connection with what it received until then, or with `answer`."""

    def __init__(self) -> None:
        self.received: list[bytes] = []
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        self.open = 0
        self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            self.received.append(await reader.read(65536))
            writer.write(self.answer)
            await writer.drain()
        except OSError:
            pass
        finally:
            self.open -= 1
            writer.close()


def connect(host: str, port: int) -> bytes:
    return f"CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n\r\n".encode()


def get(host: str, port: int) -> bytes:
    return f"GET http://{host}:{port}/ HTTP/1.1\r\n\r\n".encode()
