"""Which chat platforms there are, and how their adapters are put together. A new platform is one entry here."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from pykka import ActorRef

from hermes import wall_clock
from hermes.actors.adapter import AdapterActor
from hermes.actors.delivery import DeliveryActor
from hermes.adapters.chat.desk import ChatDesk, allowed
from hermes.commands.desk import CommandDesk
from hermes.ports import ChatAdapter, ChatEdge, Hub, Journal, Outgoing, Sessions
from hermes.settings import Config
from hermes.slack_assembly import make_slack
from hermes.supervision.root import ChildSpec
from hermes.telegram_assembly import make_telegram
from hermes.types import TurnId

DELIVERY = "delivery"  # its name among the root's children
Maker: TypeAlias = Callable[[Config, Mapping[str, str]], ChatAdapter | None]
ADAPTERS: Mapping[str, Maker] = {"slack": make_slack, "telegram": make_telegram}


def make_adapters(config: Config, environ: Mapping[str, str]) -> list[ChatAdapter]:
    """Those that are configured."""
    made = (make(config, environ) for make in ADAPTERS.values())
    return [adapter for adapter in made if adapter is not None]


def delivery_spec(adapters: Sequence[ChatAdapter], *, journal: Journal, hub: Hub) -> ChildSpec:
    start = partial(
        DeliveryActor.start,
        platforms={adapter.platform.name: adapter.platform for adapter in adapters},
        journal=journal,
        hub=hub,
        clock=wall_clock.wall,
        jitter=random.random,
        name=DELIVERY,
    )
    return ChildSpec(name=DELIVERY, start=lambda owner: start(owner=owner))


def adapter_spec(
    adapter: ChatAdapter,
    *,
    config: Config,
    sessions: Sessions,
    outgoing: Outgoing,
    commands: CommandDesk,
    new_turn_id: Callable[[], TurnId],
) -> ChildSpec:
    name = adapter.platform.name

    def edge(alive: Callable[[], None]) -> ChatEdge:
        return ChatDesk(
            name,
            sessions=sessions,
            outgoing=outgoing,
            commands=commands,
            may_talk=allowed(getattr(config, name).allowed_users),
            new_turn_id=new_turn_id,
            clock=wall_clock.wall,
            alive=alive,
        )

    def start(owner: ActorRef[Any]) -> ActorRef[Any]:
        return AdapterActor.start(
            adapter, edge=edge, clock=wall_clock.wall, jitter=random.random, name=name, owner=owner
        )

    return ChildSpec(name=name, start=start)
