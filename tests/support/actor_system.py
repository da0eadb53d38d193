"""Ports of an actor system whose tests care for a few of them."""

from __future__ import annotations

from collections.abc import Collection
from itertools import count
from typing import Any

from hermes.actors.process.process_registry import ProcessRegistry
from hermes.actors.process.process_services import ProcessSettings
from hermes.actors.reset.reset_rules import ResetSettings
from hermes.app.actor_system import ActorSystem, Ports, SystemSettings
from hermes.domain.directory.directory_settings import DirectorySettings
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.session.protocol import TurnLimits
from hermes.ports.given import Clock, IdSource
from hermes.ports.storage import Journal
from hermes.services.event_hub import EventHub
from hermes.supervision.restart_policy import RestartIntensity
from tests.support.waiting import until

DIRECTORY_SETTINGS = DirectorySettings(
    idle_after_s=600, max_live=1000, limits=TurnLimits(max_queue=4), memory_limit_bytes=0, seen_for_s=86400
)


def make_ports(journal: Journal, clock: Clock, **changes: Any) -> Ports:
    """Return ports without a process host and chat platforms, with ids that count and restarts without a pause."""
    given: dict[str, Any] = {
        "journal": journal,
        "hub": EventHub(),
        "host": None,
        "threads": None,
        "registry": ProcessRegistry(),
        "platforms": {},
        "clock": clock,
        "steady": clock,
        "pulse": clock,
        "random": lambda: 0.0,
        "ids": counting_ids(),
        "erase": _erase_nothing,
        "restart_policy": RestartIntensity(first_delay_s=0.0, max_delay_s=0.0),
    }
    return Ports(**{**given, **changes})


def make_settings(**changes: Any) -> SystemSettings:
    given: dict[str, Any] = {
        "directory": DIRECTORY_SETTINGS,
        "resets": ResetSettings(),
        "processes": ProcessSettings(),
        "max_waiting": 100,
        "reset_every_s": 1e6,  # tests tick themselves
    }
    return SystemSettings(**{**given, **changes})


async def start_actors(system: ActorSystem, agent: Any, *, without: Collection[str] = (), **given: Any) -> None:
    """Start the actors, and wait until the root has started its children."""
    system.start(agent, without=without, **given)
    await until(lambda: system.children.last() is not None)


def counting_ids() -> IdSource:
    sessions, turns, processes = count(1), count(1), count(1)
    return IdSource(
        session=lambda _: SessionId(f"fresh-{next(sessions)}"),
        turn=lambda: TurnId(f"turn-{next(turns)}"),
        process=lambda: f"proc_{next(processes)}",
    )


async def _erase_nothing(_: SessionId) -> None:
    """There are only the records of a session."""
