from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes.stage import ProcessFixture


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[ProcessFixture]:
    made = ProcessFixture(tmp_path / "processes")
    yield made
    made.clear()
