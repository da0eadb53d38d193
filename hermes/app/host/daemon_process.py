"""The daemon's process: installs the signal handlers, runs the daemon, then exits or executes itself again."""

from __future__ import annotations

import asyncio
import gc
import os
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

from loguru import logger

from hermes import __version__
from hermes.app.composition import running
from hermes.app.daemon import Daemon
from hermes.app.host.orphans import keeping_orphans
from hermes.app.host.os_process import (
    LoopErrorLog,
    hide_from_children,
    raise_descriptor_limit,
    return_free_memory,
    use_one_heap,
)
from hermes.app.host.refused_start import noting_refusal
from hermes.app.host.service_timeout import service_timeout_s, within
from hermes.app.host.signals import STOP_SIGNALS, handle_signals
from hermes.app.reload import Reload
from hermes.config.file import EMPTY
from hermes.config.home import Home
from hermes.config.log import print_among_lines
from hermes.config.secret import api_key_path
from hermes.config.settings import Config
from hermes.supervision.stop_switch import StopSwitch
from hermes.supervision.watchdog import ShutdownWatchdog
from hermes.system.crash_point import reach


def run(home: Home, config: Config, *, environ: Mapping[str, str]) -> int:
    """Run the daemon in the foreground until it stops. Returns the exit code."""
    hide_from_children()
    use_one_heap()
    raise_descriptor_limit()
    try:
        code, stop = asyncio.run(_serve(home, config, environ))
    finally:
        logger.remove()  # flushes its sinks
    reach("stop: over")
    if stop.comes_back:
        _restart_process(environ, stop)
    for number in STOP_SIGNALS:  # the interpreter restores the default handlers, which would end it with a signal
        signal.signal(number, signal.SIG_IGN)
    return code


def _restart_process(environ: Mapping[str, str], stop: StopSwitch) -> None:
    """Execute the program again in this process. Returns if a stop was requested at the last moment.

    The process id stays, so that a service manager, a terminal or a container does not notice. SIGHUP is ignored
    until the new daemon handles it: the new daemon reads the configuration anyway.
    """
    if threading.current_thread() is threading.main_thread():  # no other thread can set handlers
        for number in STOP_SIGNALS:  # from here on such a signal ends the process
            signal.signal(number, signal.SIG_DFL)
    if stop.comes_back:
        os.execve(sys.executable, sys.orig_argv, dict(environ))  # noqa: S606 - no shell is wanted


async def _serve(home: Home, config: Config, environ: Mapping[str, str]) -> tuple[int, StopSwitch]:
    """Return the exit code, and the switch that decides whether the daemon starts again."""
    asyncio.get_running_loop().set_exception_handler(LoopErrorLog())
    stop = StopSwitch()
    reload = Reload()
    # Signals are handled before the first part starts and until the last one is closed.
    with handle_signals(stop, reload):
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(keeping_orphans())
            with noting_refusal(home, config.log):
                daemon = await stack.enter_async_context(running(home, config, environ, stop))
            reload.target = daemon.reload
            _collect_seldom()
            return_free_memory()
            await asyncio.to_thread(print_among_lines, _greeting(daemon))
            allowed_s = await service_timeout_s(environ)
            watchdog = daemon.shutdown.watchdog = ShutdownWatchdog(partial(_timeout_s, daemon, allowed_s))
            stop.connect(daemon.request_stop)
            await daemon.shutdown.finished
        logger.info("stopped")
        assert stop.pending is not None
        code = stop.pending.exit_code
        watchdog.disarm(partial(_exit_now, environ, stop, code))
    return code, stop


def _collect_seldom() -> None:
    """Keep the modules out of garbage collections, and collect seldom: it took a tenth of a turn's CPU time."""
    gc.freeze()
    gc.set_threshold(100_000, 10, 10)


def _timeout_s(daemon: Daemon, allowed_s: float | None) -> float:
    """Read at the time of the stop: a reload can change it."""
    return within(daemon.config.shutdown.timeout_s, allowed_s)


def _exit_now(environ: Mapping[str, str], stop: StopSwitch, code: int) -> None:
    logger.remove()
    if stop.comes_back:
        _restart_process(environ, stop)
    os._exit(code)


def _own_command() -> str:
    """Return the command as a person types it here."""
    if shutil.which("hermes"):
        return "hermes"
    own = Path(sys.executable).with_name("hermes")
    return shlex.quote(str(own)) if own.exists() else ".venv/bin/hermes"


def _greeting(daemon: Daemon) -> str:
    facts = daemon.facts
    note = f"\n  Note     {EMPTY}" if facts["config_empty"] else ""
    if "address" not in facts:
        return f"Hermes {__version__} is ready on {daemon.home.socket} (the API is off){note}"
    path = str(api_key_path(daemon.home, daemon.config))
    from_environ = "HERMES_API_KEY" in daemon.environ
    key = "$HERMES_API_KEY" if from_environ else f"$(cat {shlex.quote(path)})"
    hermes = _own_command()
    prefix = f"HERMES_HOME={shlex.quote(facts['home'])} " if "HERMES_HOME" in daemon.environ else ""
    return f"""Hermes {__version__} is ready at {facts["address"]} (model: {facts["model"]}){note}
  Talk     {prefix}{hermes}
  Browser  {prefix}{hermes} dashboard --open
  Docs     {facts["address"]}/ and {prefix}{hermes} --help
  API key  {"in the variable HERMES_API_KEY" if from_environ else path}
  Try      curl -s {facts["address"]}/v1/chat/completions -H "Authorization: Bearer {key}" \\
             -H 'Content-Type: application/json' \\
             -d '{{"model": "hermes", "messages": [{{"role": "user", "content": "Hello!"}}]}}'
  Look in  {prefix}{hermes} ps, {prefix}{hermes} doctor
  Stop     Ctrl-C, or {prefix}{hermes} stop"""
