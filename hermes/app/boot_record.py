"""Record of this boot in the store, and reports about the previous ones."""

from __future__ import annotations

from typing import Self

from loguru import logger

from hermes.actors.kernel.future import LoopFuture
from hermes.config.settings import Config
from hermes.domain.errors import HermesError
from hermes.ports.given import Clock
from hermes.ports.storage import Journal, Transaction
from hermes.supervision.boot import Boot, read_boot, started, stopped, unstarted
from hermes.supervision.shutdown import StopRequest
from hermes.supervision.stop_switch import StopSwitch
from hermes.system.crash_point import reach


class BootRecord:
    """Record of this boot: started, then refused or stopped cleanly. A crash leaves it open."""

    def __init__(self, journal: Journal, boot: Boot) -> None:
        self.boot = boot
        self.was_ready = False
        self._ended = False
        self._journal = journal

    @classmethod
    async def begin(cls, journal: Journal, clock: Clock) -> Self:
        boot = await journal.fetch(lambda reader: read_boot(reader, clock()))
        journal.commit(started(boot), lambda error: _log_failure("the start", error))
        return cls(journal, boot)

    async def write_clean_marker(self, request: StopRequest) -> None:
        """Record a clean stop. This is the last write of a daemon."""
        self._ended = True
        await self._write("a clean stop", stopped(request.announced))
        reach("stop: clean")

    async def end(self, stop: StopSwitch) -> None:
        """Record how a start ended that failed. A complete shutdown has written its marker already."""
        if self._ended:
            return
        if stop.pending is not None:
            await self.write_clean_marker(stop.pending)
        elif not self.was_ready:
            await self._write("a refused start", unstarted(self.boot))

    async def _write(self, what: str, transaction: Transaction) -> None:
        done = LoopFuture()
        self._journal.commit(transaction, done.set)
        _log_failure(what, await done)


def _log_failure(what: str, error: HermesError | None) -> None:
    if error is not None:
        logger.warning("boot record: could not store {}: {}", what, error)


def log_previous_boot(boot: Boot, *, is_held: bool) -> None:
    if boot.stopped:
        logger.info("the last daemon stopped cleanly: {}", boot.stopped)
    elif not boot.first:
        logger.warning("the last daemon did not stop cleanly; resuming open work")
    if is_held:
        logger.error("{}", boot_loop_notice(boot))


def banner(boot: Boot, config: Config) -> str:
    """Return the notice for the home channels; empty: none."""
    if boot.is_loop(config.resume.boot_loop_starts):
        return f"Hermes keeps crashing: {boot_loop_notice(boot)}."
    if not config.chat.restart_banner:
        return ""
    clean = boot.stopped or boot.first
    return "Hermes is back." if clean else "Hermes is back. It had not stopped cleanly; open work is resumed."


def boot_loop_notice(boot: Boot) -> str:
    return (
        f"this is start number {len(boot.starts)} within a minute, each after a crash: interrupted turns do not go "
        "on by themselves but with the next message, or by `hermes resume`"
    )
