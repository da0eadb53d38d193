"""What runs without a person's message, as the servers and commands reach it."""

from __future__ import annotations

from typing import Any

from hermes.domain.values import dataclass
from hermes.services.events.boot_task import BootTask
from hermes.services.events.channels import ChannelDirectory
from hermes.services.events.hooks import HookService
from hermes.services.events.quick_commands import QuickCommands
from hermes.services.events.webhooks import WebhookService


@dataclass(frozen=True, slots=True, kw_only=True)
class EventServices:
    channels: ChannelDirectory
    hooks: HookService
    webhooks: WebhookService
    quick: QuickCommands
    boot: BootTask

    def status(self) -> dict[str, Any]:
        """Return what the status shows: hooks, and webhooks that refuse their requests."""
        found: dict[str, Any] = {}
        if hooks := self.hooks.status():
            found["hooks"] = hooks
        if self.webhooks.problems:
            found["webhooks"] = dict(self.webhooks.problems)
        return found
