"""Cost of a live session without a transcript: memory, messages, stop."""

from __future__ import annotations

import asyncio
import gc
import json
import time
import tracemalloc
from types import SimpleNamespace
from typing import Any, cast

from pykka import ActorRef

from hermes.actors.session.session import SessionActor
from hermes.actors.session.session_mail import Post, SessionServices
from hermes.domain.ids import SessionId, SessionKey, TurnId
from hermes.domain.records import SessionStarted
from hermes.domain.session.fold.state_fold import begin
from hermes.domain.session.protocol import StopTurn, TurnLimits
from hermes.domain.session.state import Session
from hermes.domain.session.transaction import never_due
from hermes.domain.source import Source
from hermes.services.event_hub import EventHub

SESSIONS = 10_000
ROUNDS = 10


def run() -> dict[str, float]:
    return asyncio.run(_measure())


async def _measure() -> dict[str, float]:
    limits = TurnLimits()
    services = SessionServices(
        journal=cast("Any", None),
        agent=cast("Any", None),
        hub=EventHub(),
        clock=time.time,
        new_session=lambda _: SessionId("unused"),
        tell_directory=lambda _: None,
        limits=lambda: limits,  # shared by all sessions, as in the directory
        resets=cast("Any", SimpleNamespace(due=never_due)),
        was_reset=cast("Any", None),
        deliver=lambda _: None,
        start_children=lambda _: None,
    )
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    refs = [_start(services, number) for number in range(SESSIONS)]
    await _settle(refs)
    gc.collect()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    tells = await _tell_rate(refs)
    began = time.perf_counter()
    for stopped in [ref.stop(block=False) for ref in refs]:
        await stopped
    return {
        "bytes_per_session": (after - before) / SESSIONS,
        "tells_per_s": tells,
        "stop_10k_s": time.perf_counter() - began,
    }


def _start(services: SessionServices, number: int) -> ActorRef[SessionActor]:
    session = _session(number)
    return SessionActor.start(services, session, name=session.id)


def _session(number: int) -> Session:
    """Return a session as read from disk: it shares no strings with others."""
    id_ = SessionId(f"20261116_101010_{number:08x}")
    key = SessionKey(f"agent:main:api:dm:{id_}")
    return begin(id_, SessionStarted(at=1e9 + number, key=key, source=Source(platform="api"), reason="first message"))


async def _settle(refs: list[ActorRef[SessionActor]]) -> None:
    nothing = Post(event=StopTurn(reason="bench", turn=TurnId("none")))
    for future in [ref.ask(nothing, block=False) for ref in refs]:
        await future


async def _tell_rate(refs: list[ActorRef[SessionActor]]) -> float:
    """Send messages round robin through the state machine, until the last one is handled."""
    nothing = Post(event=StopTurn(reason="bench", turn=TurnId("none")))
    began = time.perf_counter()
    for _ in range(ROUNDS):
        for ref in refs:
            ref.tell(nothing)
        await refs[-1].ask(nothing, block=False)
    return ROUNDS * len(refs) / (time.perf_counter() - began)


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
