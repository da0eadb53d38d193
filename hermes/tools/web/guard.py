"""Which addresses the agent may fetch from, so that a page or a prompt cannot make it talk to this machine's network.

Rules:
- A URL is plain http or https, without a password, and its host is a name or an address in its usual form. Forms that
  some parsers read as an address (decimal, octal, hex, short) are refused, not understood.
- Every address that a name resolves to must be allowed, or none is used.
- What was checked is what is connected to: the resolver that aiohttp connects with is the one that checks, and each
  socket's own address is looked at once more before it exists. A name that changes its mind in between has no say.
- An address that carries another one inside (mapped, translated, tunnelled) is refused whatever it carries.
- The metadata services of clouds are refused even where private addresses are allowed.
"""

from __future__ import annotations

import socket
from ipaddress import ip_address

from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from hermes.system.own_ports import own_ports
from hermes.system.public_address import (
    Address,
    Refusal,
    Resolve,
    is_host_name,
    looks_like_address,
    public_only,
    system_resolve,
)
from hermes.tools.tool import ToolError

MAX_URL_CHARS = 4096


class AddressRefusedError(ToolError):
    """Nothing was sent: the address is not one that the agent may fetch from."""


class AddressGuard:
    def __init__(self, *, resolve: Resolve = system_resolve, refusal: Refusal = public_only) -> None:
        self._resolve = resolve
        self._refusal = refusal

    def url(self, text: str | URL) -> URL:
        """The URL as it will be asked for. Looks at everything but what the host's name resolves to."""
        url = _parsed(text)
        host = (url.raw_host or "").removesuffix(".")
        if looks_like_address(host):
            self.check(host, _plain_address(host))
        elif not is_host_name(host):
            raise AddressRefusedError(f"{host!r} is not the name of a host")
        return url.with_host(host).with_fragment(None)

    def check(self, host: str, address: Address) -> None:
        if why := self._refusal(address):
            shown = host if host == str(address) else f"{host} ({address})"
            raise AddressRefusedError(f"{shown} may not be fetched from: {why}")

    async def addresses(self, host: str) -> list[str]:
        """All of the host's addresses, each of them allowed."""
        found = [ip_address(text) for text in await self._resolve(host)]
        for address in found:
            self.check(host, address)
        return [str(address) for address in found]

    def socket(self, place: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
        """The socket for one attempt to connect, made only when its address is allowed."""
        family, kind, protocol, _, target = place
        address = ip_address(str(target[0]))
        self.check(str(target[0]), address)
        if target[1] in own_ports() and _is_this_machine(address):
            raise AddressRefusedError(f"{address} port {target[1]} may not be fetched from: it is Hermes itself")
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made


def _is_this_machine(address: Address) -> bool:
    """Only an address of this machine can be bound to. Nothing is sent."""
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return address.is_loopback
    return True


class GuardedResolver(AbstractResolver):
    """What aiohttp resolves with: it is given checked addresses and nothing else."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002 - all are looked at, whichever is wanted
    ) -> list[ResolveResult]:
        addresses = await self._guard.addresses(host)
        if not addresses:
            raise OSError(f"{host} has no address")
        return [_result(host, address, port) for address in addresses]

    async def close(self) -> None:
        """Nothing is held."""


def _result(host: str, address: str, port: int) -> ResolveResult:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    flags = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    return ResolveResult(hostname=host, host=address, port=port, family=family, proto=0, flags=flags)


def _parsed(text: str | URL) -> URL:
    if isinstance(text, str):
        text = text.strip()
        if len(text) > MAX_URL_CHARS or not text.isprintable() or " " in text or "\\" in text:
            raise AddressRefusedError("the URL is too long or holds characters that no URL has")
    try:
        url = URL(text)
        known = url.scheme in ("http", "https") and bool(url.raw_host) and url.port is not None
    except ValueError as error:  # its text can hold the whole URL
        raise AddressRefusedError("the URL cannot be read") from error
    if not known:
        raise AddressRefusedError("only full http:// and https:// addresses can be fetched")
    if url.raw_user is not None or url.raw_password is not None:
        raise AddressRefusedError("a URL with a user name or password in it is not fetched")
    return url


def _plain_address(host: str) -> Address:
    try:
        address = ip_address(host)
    except ValueError as error:
        raise AddressRefusedError(f"{host!r} is not an address in its usual form") from error
    return address
