"""What runs without a person's message, as the servers and commands reach it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hermes.domain.values import dataclass
from hermes.ports.metrics import EventFigures
from hermes.services.events.boot_task import BootTask
from hermes.services.events.channels import ChannelDirectory
from hermes.services.events.hooks import HookService
from hermes.services.events.webhooks import WebhookService

if TYPE_CHECKING:
    from hermes.services.events.user_commands import UserCommands


@dataclass(frozen=True, slots=True, kw_only=True)
class EventServices:
    channels: ChannelDirectory
    hooks: HookService
    webhooks: WebhookService
    quick: Callable[[], UserCommands]  # of the configuration and of plugins; imports them
    boot: BootTask
    plugins: Sequence[Mapping[str, Any]] = ()  # those that were loaded, and their problems

    def figures(self) -> EventFigures:
        hooks = self.hooks.status()
        return EventFigures(
            hooks={name: hooks[name] for name in ("run", "failed", "dropped")} if hooks else {},
            hooks_waiting=hooks.get("waiting", 0),
            webhooks={(route, outcome.value): number for (route, outcome), number in self.webhooks.counts.items()},
        )

    def status(self) -> dict[str, Any]:
        """Return what the status shows: hooks, and webhooks that refuse their requests."""
        found: dict[str, Any] = {}
        if hooks := self.hooks.status():
            found["hooks"] = hooks
        if self.webhooks.problems:
            found["webhooks"] = dict(self.webhooks.problems)
        if failed := {each["name"]: each["problem"] for each in self.plugins if each["problem"]}:
            found["plugins"] = failed
        return found
