"""Guard against server-side request forgery: the addresses that the agent may fetch from.

Rules:
- A URL is http or https, without a password. Its host is a name or an address in standard form. Other forms that
  some parsers accept as an address (decimal, octal, hex, short) are refused.
- All addresses that a name resolves to must be allowed, or none is used.
- The checked address is the one connected to: aiohttp uses our checking resolver, and each socket's address is
  checked again. This prevents DNS rebinding.
- An address that embeds another one (mapped, translated, tunnelled) is always refused.
- Cloud metadata services are refused even if private addresses are allowed.
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
    """The agent may not fetch from this address. Nothing was sent."""


class AddressGuard:
    def __init__(self, *, resolve: Resolve = system_resolve, refusal: Refusal = public_only) -> None:
        self._resolve = resolve
        self._refusal = refusal

    def url(self, text: str | URL) -> URL:
        """Return the checked URL to request. Host names are resolved and checked later."""
        url = _parsed(text)
        host = (url.raw_host or "").removesuffix(".")
        if looks_like_address(host):
            self.check(host, _plain_address(host))
        elif not is_host_name(host):
            raise AddressRefusedError(f"{host!r} is not a valid host name.")
        return url.with_host(host).with_fragment(None)

    def check(self, host: str, address: Address) -> None:
        if why := self._refusal(address):
            shown = host if host == str(address) else f"{host} ({address})"
            raise AddressRefusedError(f"Fetching from {shown} is not allowed: {why}.")

    async def addresses(self, host: str) -> list[str]:
        """Return all addresses of the host. Raises AddressRefusedError if one is not allowed."""
        found = [ip_address(text) for text in await self._resolve(host)]
        for address in found:
            self.check(host, address)
        return [str(address) for address in found]

    def socket(self, place: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
        """Create the socket for one connection attempt. Raises AddressRefusedError if its address is not allowed."""
        family, kind, protocol, _, target = place
        address = ip_address(str(target[0]))
        self.check(str(target[0]), address)
        if target[1] in own_ports() and _is_this_machine(address):
            raise AddressRefusedError(
                f"Fetching from {address} port {target[1]} is not allowed: it is Hermes itself."
            )
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made


def _is_this_machine(address: Address) -> bool:
    """Return whether the address belongs to this machine: only such an address can be bound. Sends nothing."""
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return address.is_loopback
    return True


class GuardedResolver(AbstractResolver):
    """Resolver for aiohttp that returns only checked addresses."""

    def __init__(self, guard: AddressGuard) -> None:
        self._guard = guard

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002 - all families are checked
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
            raise AddressRefusedError("The URL is too long or contains invalid characters.")
    try:
        url = URL(text)
        known = url.scheme in ("http", "https") and bool(url.raw_host) and url.port is not None
    except ValueError as error:  # its text may contain the whole URL
        raise AddressRefusedError("The URL is not valid.") from error
    if not known:
        raise AddressRefusedError("Only complete http:// and https:// URLs can be fetched.")
    if url.raw_user is not None or url.raw_password is not None:
        raise AddressRefusedError("URLs with a user name or password are not fetched.")
    return url


def _plain_address(host: str) -> Address:
    try:
        address = ip_address(host)
    except ValueError as error:
        raise AddressRefusedError(f"{host!r} is not an address in standard form.") from error
    return address
