"""Sandboxes for tests, where this machine can make them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from hermes.sandbox.sandbox import Sandbox, open_sandbox
from hermes.sandbox.sandbox_plan import SandboxRules


@cache
def _opened() -> Sandbox:
    return open_sandbox(SandboxRules(), home=str(Path.home()), enabled=True)


def working_sandbox() -> Sandbox:
    sandbox = _opened()
    if not sandbox.works:
        pytest.skip(f"no sandbox here: {sandbox.probe.cause.value} {sandbox.probe.detail}")
    return sandbox
