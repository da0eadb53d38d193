"""Check of network addresses and host names, shared by the web tools and the proxy of the sandbox.

An address that is not public is refused. The metadata services of clouds, and addresses that carry another address
inside (mapped, translated, tunnelled), are refused even where private addresses are allowed.
"""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Resolve: TypeAlias = Callable[
    [str], Awaitable[Sequence[str]]
]  # host name to addresses; raises OSError if there are none
Refusal: TypeAlias = Callable[[Address], str]  # reason to refuse an address; empty if it is allowed

_METADATA = (
    IPv4Network("169.254.0.0/16"),  # most clouds, and all of link-local
    IPv4Network("100.100.100.200/32"),
    IPv4Network("192.0.0.192/32"),
    IPv4Network("168.63.129.16/32"),  # looks public, but is the host of a virtual machine
    IPv6Network("fd00:ec2::/32"),
    IPv6Network("fd20:ce::/32"),
    IPv6Network("fe80::/10"),
)
_CARRIERS = (
    IPv6Network("::/96"),  # IPv4-compatible; loopback and unspecified are handled before
    IPv6Network("::ffff:0:0/96"),
    IPv6Network("::ffff:0:0:0/96"),
    IPv6Network("64:ff9b::/96"),
    IPv6Network("64:ff9b:1::/48"),
    IPv6Network("2001::/32"),  # Teredo
    IPv6Network("2002::/16"),  # 6to4
)
_ISATAP = (0x00005EFE, 0x02005EFE)  # third quarter of an address that ends in an IPv4 address
# Global in some versions of Python and not in others.
_NOT_PUBLIC = (
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv6Network("2001::/23"),
    IPv6Network("3fff::/20"),
)
_PUBLIC_V6 = IPv6Network("2000::/3")

_NUMERIC_LABEL = re.compile(r"\d+|0x[0-9a-f]*", re.IGNORECASE)
_HOST_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.(?!-)[a-z0-9_-]{1,63})*", re.IGNORECASE)
_MAX_HOST_NAME = 253


def is_host_name(host: str) -> bool:
    """Return whether a host is written as a name. Anything that some parser reads as an address is not one."""
    return not looks_like_address(host) and bool(_HOST_NAME.fullmatch(host)) and len(host) <= _MAX_HOST_NAME


def looks_like_address(host: str) -> bool:
    """Return whether some parser could read a host as an address: decimal, octal, hexadecimal and short forms too."""
    return ":" in host or bool(_NUMERIC_LABEL.fullmatch(host.rpartition(".")[2]))


def public_only(address: Address) -> str:
    if why := _never(address):
        return why
    public = address.is_global and not _within(address, _NOT_PUBLIC)
    if isinstance(address, IPv6Address):
        public = public and address in _PUBLIC_V6
    return "" if public else "it is not a public address"


def public_or_private(address: Address) -> str:
    """Return why an address is refused, if private addresses are allowed."""
    return _never(address)


def _never(address: Address) -> str:
    if _within(address, _METADATA):
        return "it belongs to a cloud metadata service or is link-local"
    if address.is_multicast or address.is_unspecified:
        return "it is not the address of a single machine"
    if address.is_loopback:
        return ""
    if isinstance(address, IPv6Address):
        carries = _within(address, _CARRIERS) or (int(address) >> 32) & 0xFFFFFFFF in _ISATAP
        return "it contains another address" if carries or address.scope_id else ""
    return "it is reserved" if address.is_reserved or address in IPv4Network("0.0.0.0/8") else ""


def _within(address: Address, networks: Sequence[IPv4Network | IPv6Network]) -> bool:
    return any(address in network for network in networks if network.version == address.version)


async def system_resolve(host: str) -> list[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(place[0]) for *_, place in found))
