"""Import of aiohttp without 4 MB that an idle daemon does not need (docs/decisions/0034-idle-memory.md).

aiohttp makes the TLS contexts of its client when it is imported, and both read all CA certificates of the system.
Here a context reads them before its first connection. Until then it trusts nobody, so a mistake here cannot make a
connection less secure. `frozenlist` is imported without its extension, which loads the C++ library for lists of a
handful of signal handlers. `idna` and `unicodedata` wait for a host name, the table of media types for a file name.
"""

from __future__ import annotations

import mimetypes
import os
import ssl
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from hermes.system.late_module import imported_late

_SWITCH = "FROZENLIST_NO_EXTENSIONS"  # documented by frozenlist
_late: list[ssl.SSLContext] = []


def import_aiohttp() -> None:
    """Import aiohttp. If the program has imported it before, nothing happens."""
    if "aiohttp" not in sys.modules:
        with _without_extension(), _late_certificates(), _late_media_types(), imported_late("idna", "unicodedata"):
            import aiohttp  # noqa: F401, PLC0415 - this function is about the import


def load_certificates() -> None:
    """Read the certificates for the contexts that still lack them. Blocks for some 20 ms: for a thread."""
    while _late:
        _trust_system(_late.pop())


class _LateContext(ssl.SSLContext):
    """Client context that reads the CA certificates before its first connection."""

    def wrap_bio(self, *args: Any, **options: Any) -> ssl.SSLObject:
        _trust_system(self)
        return self.wrap_bio(*args, **options)

    def wrap_socket(self, *args: Any, **options: Any) -> ssl.SSLSocket:
        _trust_system(self)
        return self.wrap_socket(*args, **options)


def _trust_system(context: ssl.SSLContext) -> None:
    ssl.SSLContext.load_default_certs(context)
    context.__class__ = ssl.SSLContext  # only now: another thread may connect meanwhile


@contextmanager
def _late_certificates() -> Iterator[None]:
    """Make the contexts that are created meanwhile read the certificates later. It holds for all threads."""

    def load_later(context: ssl.SSLContext, *_: object) -> None:
        context.__class__ = _LateContext
        _late.append(context)

    def set_later(context: ssl.SSLContext) -> None:  # of the context that verifies nothing
        context.__class__ = _LateContext

    load = ssl.SSLContext.load_default_certs
    replaced: Any = ssl.SSLContext
    replaced.load_default_certs, replaced.set_default_verify_paths = load_later, set_later
    try:
        yield
    finally:
        replaced.load_default_certs = load
        del replaced.set_default_verify_paths  # the class inherits it


@contextmanager
def _late_media_types() -> Iterator[None]:
    """Keep aiohttp from reading the system's table of media types, which the first guess of a type reads."""
    before, mimetypes.inited = mimetypes.inited, True
    try:
        yield
    finally:
        mimetypes.inited = before


@contextmanager
def _without_extension() -> Iterator[None]:
    before = os.environ.get(_SWITCH)
    os.environ[_SWITCH] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_SWITCH]
        else:
            os.environ[_SWITCH] = before
