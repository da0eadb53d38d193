"""What is known of earlier starts: written down, told, and held against a daemon that keeps crashing."""

from __future__ import annotations

from loguru import logger

from hermes import wall_clock
from hermes.actors.future import LoopFuture
from hermes.actors.journal import ActorJournal
from hermes.crash_point import reach
from hermes.daemon.operations import StopSwitch
from hermes.errors import HermesError
from hermes.settings import Config
from hermes.supervision.boot import Boot, read_boot, started, stopped


async def note_start(journal: ActorJournal) -> Boot:
    boot = await journal.fetch(lambda reader: read_boot(reader, wall_clock.wall()))
    journal.commit(started(boot), _complain_unwritten)
    return boot


def _complain_unwritten(error: HermesError | None) -> None:
    if error is not None:
        logger.warning("that this daemon has started could not be written down: {}", error)


def log_last_life(boot: Boot, *, holds: bool) -> None:
    if boot.stopped:
        logger.info("the last daemon stopped cleanly: {}", boot.stopped)
    elif not boot.first:
        logger.warning("the last daemon did not stop cleanly; what was open is taken up")
    if holds:
        logger.error("{}", loop_words(boot))


def banner(boot: Boot, config: Config) -> str:
    """What the home channels are told; empty: nothing."""
    if boot.is_loop(config.resume.boot_loop_starts):
        return f"Hermes keeps crashing: {loop_words(boot)}."
    if not config.chat.restart_banner:
        return ""
    clean = boot.stopped or boot.first
    return "Hermes is back." if clean else "Hermes is back. It had not stopped cleanly; what was open goes on."


def loop_words(boot: Boot) -> str:
    return (
        f"this is start number {len(boot.starts)} within a minute, each after a crash: interrupted turns do not go "
        "on by themselves but with the next message, or by `hermes resume`"
    )


async def note_stop(journal: ActorJournal, stop: StopSwitch) -> None:
    """The last thing that is written: after this there is nothing left to lose."""
    if stop:
        done = LoopFuture()
        journal.commit(stopped((await stop.requested()).announced), done.set)
        if (error := await done) is not None:
            logger.warning("that this stop was clean could not be written down: {}", error)
        reach("stop: clean")
