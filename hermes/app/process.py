"""The process around the daemon: signals, the end of a stop that hangs, the same process from the start."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from functools import partial

from loguru import logger

from hermes import __version__
from hermes.app.composition import running
from hermes.app.daemon import Daemon
from hermes.app.operations import StopSwitch
from hermes.app.orphans import keeping_orphans
from hermes.app.os_process import LoopExceptionHandler, hide_from_children, raise_descriptor_limit
from hermes.app.refused_start import noting_refusal
from hermes.app.reload import Reload
from hermes.app.signals import STOP_SIGNALS, handle_signals
from hermes.app.stop_budget import patience_s, within
from hermes.config.file import EMPTY
from hermes.config.home import Home
from hermes.config.log import print_among_lines
from hermes.config.secret import api_key_path
from hermes.config.settings import Config
from hermes.system.crash_point import reach

EXIT_TRY_AGAIN = 75
_LEFT_S = 1.0


def run(home: Home, config: Config, *, environ: Mapping[str, str]) -> int:
    """The daemon in the foreground, until a signal or an operator ends it. Returns the exit code."""
    hide_from_children()
    raise_descriptor_limit()
    try:
        code, stop = asyncio.run(_serve(home, config, environ))
    finally:
        logger.remove()  # writes what its sinks still hold
    reach("stop: over")
    if stop.comes_back:
        _begin_anew(environ, stop)
    for number in STOP_SIGNALS:  # the interpreter takes handlers back before it ends, and would die of one then
        signal.signal(number, signal.SIG_IGN)
    return code


def _begin_anew(environ: Mapping[str, str], stop: StopSwitch) -> None:
    """The same process, from the start: a service manager, a terminal or a container notices nothing of it.

    It returns if a stop was asked for at the last moment. A reload that is asked for now stays ignored until the new
    daemon listens: it reads the configuration anyway.
    """
    if threading.current_thread() is threading.main_thread():  # no other one may do that
        for number in STOP_SIGNALS:  # from here on one ends the process
            signal.signal(number, signal.SIG_DFL)
    if stop.comes_back:
        os.execve(sys.executable, sys.orig_argv, dict(environ))  # noqa: S606 - that is the point


async def _serve(home: Home, config: Config, environ: Mapping[str, str]) -> tuple[int, StopSwitch]:
    """The exit code, and the switch that says whether the daemon is to come back."""
    asyncio.get_running_loop().set_exception_handler(LoopExceptionHandler())
    stop = StopSwitch()
    reload = Reload()
    # Before anything is there to stop, and until nothing is left.
    with handle_signals(stop.request, reload, stop.request_late):
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(keeping_orphans())
            with noting_refusal(home, config.log):
                daemon = await stack.enter_async_context(running(home, config, environ, stop))
            reload.target = daemon.reload
            await asyncio.to_thread(print_among_lines, _greeting(daemon))
            allowed_s = await patience_s(environ)
            request = await stop.requested()
            reach("stop: asked")
            last_resort = ShutdownWatchdog(within(daemon.config.shutdown.timeout_s, allowed_s))
            await daemon.drain(request, last_resort.put_off)
        logger.info("stopped")
        last_resort.all_is_done(partial(_leave_now, environ, stop, request.exit_code))
    return request.exit_code, stop


def _leave_now(environ: Mapping[str, str], stop: StopSwitch, code: int) -> None:
    logger.remove()
    if stop.comes_back:
        _begin_anew(environ, stop)
    os._exit(code)


class ShutdownWatchdog:
    """A stop that hangs ends all the same: everything acknowledged is on disk, and the next start takes it up."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._timer = self._armed()

    def put_off(self) -> None:
        """The stop goes on, and somebody has the patience: it has its time once more."""
        self._timer.cancel()
        self._timer = self._armed()

    def all_is_done(self, leave: Callable[[], None]) -> None:
        """What is left are threads that nobody needs any more, one that imports a library, say: they get a moment."""
        self._timer.cancel()
        self._timer = _in(_LEFT_S, leave)

    def _armed(self) -> threading.Timer:
        return _in(self._timeout_s, self._leave)

    def _leave(self) -> None:
        said = threading.Thread(
            target=logger.error,
            args=("the stop made no end for {} s; leaving by force", self._timeout_s),
            daemon=True,
        )
        said.start()
        said.join(0.2)  # and no longer: the log may be what hangs
        os._exit(EXIT_TRY_AGAIN)


def _in(seconds: float, call: Callable[[], None]) -> threading.Timer:
    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
    return timer


def _greeting(daemon: Daemon) -> str:
    facts = daemon.facts
    note = f"\n  Note     {EMPTY}" if facts["config_empty"] else ""
    if "address" not in facts:
        return f"Hermes {__version__} is ready on {daemon.home.socket} (the API is off){note}"
    path = str(api_key_path(daemon.home, daemon.config))
    from_environ = "HERMES_API_KEY" in daemon.environ
    key = "$HERMES_API_KEY" if from_environ else f"$(cat {shlex.quote(path)})"
    hermes = "hermes" if shutil.which("hermes") else ".venv/bin/hermes"
    prefix = f"HERMES_HOME={shlex.quote(facts['home'])} " if "HERMES_HOME" in daemon.environ else ""
    return f"""Hermes {__version__} is ready at {facts["address"]} (model: {facts["model"]}){note}
  API key  {"in the variable HERMES_API_KEY" if from_environ else path}
  Try      curl -s {facts["address"]}/v1/chat/completions -H "Authorization: Bearer {key}" \\
             -H 'Content-Type: application/json' \\
             -d '{{"model": "hermes", "messages": [{{"role": "user", "content": "Hello!"}}]}}'
  Look in  {prefix}{hermes} ps
  Stop     Ctrl-C, or {prefix}{hermes} stop"""
