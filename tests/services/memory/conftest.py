from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.services.memory.harness import Bench
from tests.support.journals import LoopJournal


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    # The clock is ahead of the real one, so that files written now are older than the next change.
    return Bench(directory=tmp_path / "memories", journal=LoopJournal(), clock=[time.time() + 1000])
