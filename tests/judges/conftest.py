"""The servers of others, where `make judges` has put them. Elsewhere these tests are skipped."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def packages() -> Path:
    folder = os.environ.get("HERMES_TEST_JUDGES")
    if not folder or [name for _, name in socket.if_nameindex()] != ["lo"]:
        pytest.skip("needs servers of others, in a network of their own: make judges")
    return Path(folder) / "node_modules"
