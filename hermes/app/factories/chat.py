"""Factory of what stands between chat adapters and sessions. Imported only if a platform is enabled."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from hermes.actors.adapter import AdapterActor
from hermes.actors.kernel.ref import ActorRef
from hermes.adapters.chat.access import AccessControl
from hermes.adapters.chat.home_watch import EVERY_S, HomeWatch
from hermes.adapters.chat.intake import SessionChatIntake
from hermes.adapters.chat.moved import MovedChats
from hermes.app.actor_system import ActorSystem
from hermes.config.platforms.entry import PlatformSettings
from hermes.config.settings import Config
from hermes.domain.errors import HermesError
from hermes.domain.source import Source
from hermes.media.reception import Reception
from hermes.ports.chat import ChatAdapter, ChatIntake
from hermes.ports.operations import Operations
from hermes.services.commands.service import CommandService
from hermes.services.home import HomeService
from hermes.services.pairing import PairingService
from hermes.supervision.root import ChildSpec
from hermes.system.clock import pace


def make_watch(system: ActorSystem, operations: Operations) -> HomeWatch:
    return HomeWatch(
        system.chat.homes,
        sessions=system.sessions,
        processes=system.processes,
        actors=operations.actors,
        clock=system.ports.clock,
        every_s=pace(EVERY_S),
    )


async def keep_homes_posted(homes: HomeService, watch: HomeWatch, *, name: str, text: str) -> None:
    """Send `text` to the home channels, if there is one, then every later notice."""
    if text:
        with suppress(HermesError):  # a failing store reports itself
            await homes.tell_all(name, text)
    await watch.run()


def make_door(
    platform: str, config: Config, pairing: PairingService, settings: PlatformSettings | None = None
) -> AccessControl:
    settings = settings or config.platforms()[platform]
    return AccessControl(
        pairing=pairing,
        allowed=settings.allowed_users,
        admins=settings.admins,
        pair=config.chat.strangers == "pair",
        places=settings.places,
        open_places=settings.open_places,
    )


def adapter_spec(
    adapter: ChatAdapter,
    *,
    config: Config,
    system: ActorSystem,
    commands: CommandService,
    reception: Reception | None = None,
    learn: Callable[[Source], None] = lambda _: None,
    access: PlatformSettings | None = None,
) -> ChildSpec:
    name = adapter.platform.name
    sessions, ports = system.sessions, system.ports
    door = make_door(name, config, system.chat.pairing, access)

    def edge(alive: Callable[[], None], trouble: Callable[[str, str], None]) -> ChatIntake:
        return SessionChatIntake(
            sessions=sessions,
            outbox=system.outbox,
            commands=commands,
            access=door,
            moved=MovedChats(name, sessions),
            new_turn_id=ports.ids.turn,
            clock=ports.clock,
            alive=alive,
            trouble=trouble,
            per_user=config.chat.group_sessions_per_user,
            abilities=adapter.platform.abilities,
            compose=None if reception is None else reception.message,
            learn=learn,
        )

    def start(owner: ActorRef[Any]) -> ActorRef[Any]:
        return AdapterActor.start(adapter, edge=edge, clock=ports.clock, jitter=ports.random, name=name, owner=owner)

    return ChildSpec(name=name, start=start)
