"""Factory of chat adapters. A new platform is one entry here."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from hermes.actors.adapter import AdapterActor
from hermes.actors.delivery.delivery import DeliveryActor
from hermes.actors.kernel.ref import ActorRef
from hermes.adapters.chat.access import AccessControl
from hermes.adapters.chat.home_watch import EVERY_S, HomeWatch
from hermes.adapters.chat.intake import SessionChatIntake
from hermes.adapters.chat.moved import MovedChats
from hermes.adapters.chat.secret_masking import SecretMaskingPlatform
from hermes.adapters.chat.services import ChatServices
from hermes.app.factories.platform import assemblies
from hermes.config.settings import Config
from hermes.domain.errors import HermesError
from hermes.domain.ids import TurnId
from hermes.domain.session.state import Session
from hermes.media.reception import Reception
from hermes.ports.chat import ChatAdapter, ChatIntake, Outbox, Platform
from hermes.ports.hub import Hub
from hermes.ports.operations import Operations
from hermes.ports.processes import ProcessList
from hermes.ports.sessions import Sessions
from hermes.ports.storage import Journal
from hermes.services.commands.service import CommandService
from hermes.services.home import HomeService
from hermes.services.pairing import GAP, PairingService
from hermes.supervision.root import ChildSpec
from hermes.system import clock as wall_clock

DELIVERY = "delivery"  # name of the child of the root
_FRESH_AFTER_S = 60.0  # an answer that grew for longer ends as a new message, which notifies people


def make_adapters(config: Config, environ: Mapping[str, str]) -> list[ChatAdapter]:
    """Make the adapters of the enabled platforms."""
    made = (assembly.make(config, environ) for assembly in assemblies().values())
    return [adapter for adapter in made if adapter is not None]


def make_chat_services(adapters: Sequence[ChatAdapter], *, sessions: Sessions, outbox: Outbox) -> ChatServices:
    platforms = [adapter.platform.name for adapter in adapters]
    return ChatServices(
        platforms=platforms,
        pairing=PairingService(sessions=sessions, outbox=outbox, clock=wall_clock.wall),
        homes=HomeService(platforms, sessions=sessions, outbox=outbox, clock=wall_clock.wall),
        outbox=outbox,
        clock=wall_clock.wall,
    )


def make_watch(
    chat_services: ChatServices, *, sessions: Sessions, processes: ProcessList, operations: Operations
) -> HomeWatch:
    return HomeWatch(
        chat_services.homes,
        sessions=sessions,
        processes=processes,
        actors=operations.actors,
        clock=wall_clock.wall,
        every_s=wall_clock.pace(EVERY_S),
    )


async def keep_homes_posted(homes: HomeService, watch: HomeWatch, *, name: str, text: str) -> None:
    """Send `text` to the home channels, if there is one, then every later notice."""
    if text:
        with suppress(HermesError):  # a failing store reports itself
            await homes.tell_all(name, text)
    await watch.run()


async def tell_left(homes: HomeService, session: Session, left: str) -> None:
    text = f"Session {session.id}, which has no chat, was reset: {left}"
    await homes.tell(f"reset:{session.id}:{session.next_seq}", text)


def delivery_spec(
    adapters: Sequence[ChatAdapter], *, journal: Journal, hub: Hub, pairing: PairingService
) -> ChildSpec:
    platforms: dict[str, Platform] = {
        adapter.platform.name: SecretMaskingPlatform(adapter.platform, gap=GAP, fill=pairing.fill)
        for adapter in adapters
    }
    start = partial(
        DeliveryActor.start,
        platforms=platforms,
        journal=journal,
        hub=hub,
        clock=wall_clock.wall,
        jitter=random.random,
        fresh_after_s=_FRESH_AFTER_S,
        name=DELIVERY,
    )
    return ChildSpec(name=DELIVERY, start=lambda owner: start(owner=owner))


def make_door(platform: str, config: Config, pairing: PairingService) -> AccessControl:
    settings = config.platforms()[platform]
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
    sessions: Sessions,
    outbox: Outbox,
    commands: CommandService,
    pairing: PairingService,
    new_turn_id: Callable[[], TurnId],
    reception: Reception | None = None,
) -> ChildSpec:
    name = adapter.platform.name
    door = make_door(name, config, pairing)

    def edge(alive: Callable[[], None], trouble: Callable[[str, str], None]) -> ChatIntake:
        return SessionChatIntake(
            sessions=sessions,
            outbox=outbox,
            commands=commands,
            access=door,
            moved=MovedChats(name, sessions),
            new_turn_id=new_turn_id,
            clock=wall_clock.wall,
            alive=alive,
            trouble=trouble,
            per_user=config.chat.group_sessions_per_user,
            abilities=adapter.platform.abilities,
            compose=None if reception is None else reception.message,
        )

    def start(owner: ActorRef[Any]) -> ActorRef[Any]:
        return AdapterActor.start(
            adapter, edge=edge, clock=wall_clock.wall, jitter=random.random, name=name, owner=owner
        )

    return ChildSpec(name=name, start=start)
