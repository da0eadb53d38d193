from __future__ import annotations

import asyncio
import os
from pathlib import Path

from hermes.processes.child import spawn
from hermes.processes.command_output import CommandOutput, LineFeed
from hermes.tools.terminal.foreground import Ending, run_to_end


class SlowDisk(CommandOutput):
    """Takes longer for each piece than a silence lasts after which the output is given up."""

    async def _store(self, data: bytes) -> None:
        self.storing = True
        await asyncio.sleep(1)
        self.storing = False


async def test_a_disk_that_is_slow_is_not_taken_for_the_end_of_the_output(tmp_path: Path) -> None:
    argv = ("sh", "-c", "echo first; sleep 0.2; echo last")
    child = await spawn(argv, shell="/bin/sh", cwd="/", environ={"PATH": os.environ["PATH"]}, terminal=False)
    output = SlowDisk(tmp_path, "call", kept_bytes=5, stored_max_bytes=100)
    feed = LineFeed(lambda _: None, terminal=False)
    try:
        assert await run_to_end(child, output, feed, limit_s=50, processes_max=512) == Ending(code=0)
    finally:
        feed.close()
        child.close()
    assert output.total == len("first\nlast\n")
