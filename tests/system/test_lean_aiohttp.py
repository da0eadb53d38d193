"""The lean import of aiohttp: same contexts, certificates before the first connection, nothing left behind."""

from __future__ import annotations

import subprocess
import sys

import pytest

BEGIN = """
import os, ssl
from hermes.system.lean_aiohttp import import_aiohttp, load_certificates
load, set_paths = ssl.SSLContext.load_default_certs, ssl.SSLContext.set_default_verify_paths
import_aiohttp()
from aiohttp import connector
verified, unverified = connector._SSL_CONTEXT_VERIFIED, connector._SSL_CONTEXT_UNVERIFIED
whole = ssl.create_default_context()
def certificates(context): return context.cert_store_stats()["x509_ca"]
"""


@pytest.mark.parametrize(
    "checks",
    [
        pytest.param(
            """
assert not certificates(verified)
assert verified.verify_mode is ssl.CERT_REQUIRED and verified.check_hostname
assert verified.verify_flags == whole.verify_flags and verified.minimum_version == whole.minimum_version
assert unverified.verify_mode is ssl.CERT_NONE
""",
            id="certificates are not loaded at import",
        ),
        pytest.param(
            """
verified.wrap_bio(ssl.MemoryBIO(), ssl.MemoryBIO(), server_hostname="example.org")
assert type(verified) is ssl.SSLContext
assert certificates(verified) == certificates(whole)
assert verified.verify_mode is ssl.CERT_REQUIRED and verified.check_hostname
""",
            id="first connection loads them",
        ),
        pytest.param(
            """
load_certificates()
assert certificates(verified) == certificates(whole)
load_certificates()
""",
            id="they can be loaded early",
        ),
        pytest.param(
            """
assert ssl.SSLContext.load_default_certs is load
assert "set_default_verify_paths" not in vars(ssl.SSLContext)
assert "FROZENLIST_NO_EXTENSIONS" not in os.environ
import_aiohttp()
import frozenlist
assert frozenlist.FrozenList is frozenlist.PyFrozenList
""",
            id="import changes nothing else",
        ),
        pytest.param(
            """
import mimetypes, sys, yarl
assert "idna" not in sys.modules and not mimetypes.inited
assert yarl.URL("http://b\\u00fccher.example/").raw_host == "xn--bcher-kva.example"
assert "idna.core" in sys.modules
assert mimetypes.guess_type("a.html")[0] == "text/html" and mimetypes.inited
""",
            id="names and types are decoded when there are some",
        ),
    ],
)
def test_lean_import(checks: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", BEGIN + checks], check=True)
