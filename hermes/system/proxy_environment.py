"""Proxy for a URL, as set in the environment."""

from __future__ import annotations

from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass


def proxy_for(url: str) -> str | None:
    address = urlsplit(url)
    return None if proxy_bypass(address.hostname or "") else getproxies().get(address.scheme)
