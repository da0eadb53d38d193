"""Which chat platforms there are, and how their adapters are put together. A new platform is one entry here."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from pykka import ActorRef

from hermes import wall_clock
from hermes.actors.adapter import AdapterActor
from hermes.actors.delivery import DeliveryActor
from hermes.adapters.chat.desk import ChatDesk
from hermes.adapters.chat.discreet import DiscreetPlatform
from hermes.adapters.chat.door import Door
from hermes.adapters.chat.home_desk import HomeDesk
from hermes.adapters.chat.home_watch import EVERY_S, HomeWatch
from hermes.adapters.chat.moved import MovedChats
from hermes.adapters.chat.office import ChatOffice
from hermes.adapters.chat.pairing_desk import GAP, PairingDesk
from hermes.assembly.platform import assemblies
from hermes.commands.desk import CommandDesk
from hermes.errors import HermesError
from hermes.media.reception import Reception
from hermes.ports.chat import ChatAdapter, ChatEdge, Outgoing, Platform
from hermes.ports.hub import Hub
from hermes.ports.operations import Operations
from hermes.ports.processes import ProcessList
from hermes.ports.sessions import Sessions
from hermes.ports.storage import Journal
from hermes.settings import Config
from hermes.supervision.root import ChildSpec
from hermes.types import Session, TurnId

DELIVERY = "delivery"  # its name among the root's children


def make_adapters(config: Config, environ: Mapping[str, str]) -> list[ChatAdapter]:
    """Those that are configured."""
    made = (assembly.make(config, environ) for assembly in assemblies().values())
    return [adapter for adapter in made if adapter is not None]


def make_office(adapters: Sequence[ChatAdapter], *, sessions: Sessions, outgoing: Outgoing) -> ChatOffice:
    platforms = [adapter.platform.name for adapter in adapters]
    return ChatOffice(
        platforms=platforms,
        pairing=PairingDesk(sessions=sessions, outgoing=outgoing, clock=wall_clock.wall),
        homes=HomeDesk(platforms, sessions=sessions, outgoing=outgoing, clock=wall_clock.wall),
        outgoing=outgoing,
        clock=wall_clock.wall,
    )


def make_watch(
    office: ChatOffice, *, sessions: Sessions, processes: ProcessList, operations: Operations
) -> HomeWatch:
    return HomeWatch(
        office.homes,
        sessions=sessions,
        processes=processes,
        actors=operations.actors,
        clock=wall_clock.wall,
        every_s=wall_clock.pace(EVERY_S),
    )


async def keep_homes_posted(homes: HomeDesk, watch: HomeWatch, *, name: str, text: str) -> None:
    """Tell them that Hermes is back, if there is a text for it, and from then on whatever they should know."""
    if text:
        with suppress(HermesError):  # the store says elsewhere what is wrong with it
            await homes.tell_all(name, text)
    await watch.run()


async def tell_left(homes: HomeDesk, session: Session, left: str) -> None:
    text = f"Session {session.id}, which has no chat, was reset: {left}"
    await homes.tell(f"reset:{session.id}:{session.next_seq}", text)


def delivery_spec(
    adapters: Sequence[ChatAdapter], *, config: Config, journal: Journal, hub: Hub, pairing: PairingDesk
) -> ChildSpec:
    platforms: dict[str, Platform] = {
        adapter.platform.name: DiscreetPlatform(adapter.platform, gap=GAP, fill=pairing.fill) for adapter in adapters
    }
    start = partial(
        DeliveryActor.start,
        platforms=platforms,
        journal=journal,
        hub=hub,
        clock=wall_clock.wall,
        jitter=random.random,
        fresh_after_s=config.chat.fresh_final_after_s,
        name=DELIVERY,
    )
    return ChildSpec(name=DELIVERY, start=lambda owner: start(owner=owner))


def make_door(platform: str, config: Config, pairing: PairingDesk) -> Door:
    settings = config.platforms()[platform]
    return Door(
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
    outgoing: Outgoing,
    commands: CommandDesk,
    pairing: PairingDesk,
    new_turn_id: Callable[[], TurnId],
    reception: Reception | None = None,
) -> ChildSpec:
    name = adapter.platform.name
    door = make_door(name, config, pairing)

    def edge(alive: Callable[[], None], trouble: Callable[[str, str], None]) -> ChatEdge:
        return ChatDesk(
            sessions=sessions,
            outgoing=outgoing,
            commands=commands,
            door=door,
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
