from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.sandbox.boxes import working_sandbox
from tests.tools.workbench import Workbench


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    return Workbench(tmp_path)


@pytest.fixture(params=["direct", "sandbox"])
def file_bench(tmp_path: Path, request: pytest.FixtureRequest) -> Workbench:
    return Workbench(tmp_path, working_sandbox() if request.param == "sandbox" else None)


@pytest.fixture
async def files(file_bench: Workbench) -> AsyncIterator[Workbench]:
    """The file tools with and without a sandbox: both must behave the same."""
    yield file_bench
    await file_bench.close()
