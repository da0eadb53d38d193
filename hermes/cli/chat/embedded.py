"""Program of the daemon that a chat starts in a child process: it ends when its stdin does."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import TYPE_CHECKING

from hermes.domain.errors import HermesError
from hermes.domain.values import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.config.home import Home
    from hermes.config.settings import Config


def quiet_config(home: Home, environ: Mapping[str, str]) -> Config:
    """Return the configuration with few log lines: the terminal is for the conversation."""
    from hermes.config.loader import load_config

    config = load_config(home, environ)
    return config if config.log.level == "ERROR" else replace(config, log=replace(config.log, level="WARNING"))


async def _until_stdin_ends(home: Home, environ: Mapping[str, str]) -> None:
    from hermes.app.composition import embedded

    config = quiet_config(home, environ)
    loop, end = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, end.set)
    loop.add_reader(sys.stdin.fileno(), end.set)  # a pipe that nothing is written to
    async with embedded(home, config, environ):
        print("ready", flush=True)
        await end.wait()
        loop.remove_reader(sys.stdin.fileno())


def main() -> int:
    from hermes.app.host.os_process import hide_from_children
    from hermes.config.home import Home

    hide_from_children()
    try:
        asyncio.run(_until_stdin_ends(Home.from_environ(os.environ), os.environ))
    except HermesError as error:
        print(f"hermes: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
