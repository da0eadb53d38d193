"""Factory of what runs without a person's message: hooks, webhooks, BOOT.md; and of quick commands."""

from __future__ import annotations

import asyncio
import os
from functools import partial
from typing import TYPE_CHECKING

from hermes.app.actor_system import ActorSystem
from hermes.app.factories.events.plugin_factory import Plugins
from hermes.app.foundation import Foundation
from hermes.config.events.event_settings import BootConfig
from hermes.config.events.hook_entry import read_hook_folders
from hermes.config.events.route_entry import secret_of
from hermes.config.log import redact, redacted
from hermes.config.secret import Secret
from hermes.domain.child.child import Purpose
from hermes.domain.event.webhook import WebhookRoute
from hermes.services.events.boot_task import FILE, BootSettings, BootTask
from hermes.services.events.channels import ChannelDirectory
from hermes.services.events.event_run import EventRunPurpose
from hermes.services.events.event_services import EventServices
from hermes.services.events.hook_runner import HookRunner
from hermes.services.events.hooks import HookService
from hermes.services.events.webhooks import WebhookService
from hermes.system.random_id import new_marker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.domain.event.quick_command import QuickCommand
    from hermes.services.events.user_commands import UserCommands

HOOK_FOLDER = "hooks"


async def make_events(base: Foundation, system: ActorSystem, plugins: Plugins) -> EventServices:
    config, home, clock = base.config, base.home, system.ports.clock
    channels = ChannelDirectory(
        sessions=system.sessions,
        journal=base.journal,
        homes=system.chat.homes,
        platforms=system.chat.platforms,
        clock=clock,
    )
    for purpose in (Purpose.WEBHOOK, Purpose.BOOT):
        run = EventRunPurpose(purpose, channels=channels, clock=clock, epoch=base.engine.epoch)
        system.child_sessions.register(purpose, run)
    runner = HookRunner(
        environ=base.environ,
        home=str(home.data_dir),
        redact=redacted,
        start_folder=os.path.expanduser("~"),  # noqa: ASYNC240, PTH111 - reads no disk, never raises
    )
    folders, problems = await asyncio.to_thread(read_hook_folders, home.data_dir / HOOK_FOLDER)
    hooks = HookService(
        (*config.hooks.parsed(), *folders, *plugins.hooks),
        runner=runner,
        clock=clock,
        at_once=config.hooks.at_once,
        max_waiting=config.hooks.max_waiting,
        problems=problems,
    )
    webhooks = WebhookService(
        config.webhooks.parsed(),
        secret=partial(_secret, base),
        children=system.child_sessions,
        clock=clock,
        marker=new_marker,
    )
    boot = BootTask(
        home.data_dir / FILE,
        boot_settings(config.boot),
        children=system.child_sessions,
        clock=clock,
        epoch=base.engine.epoch,
    )
    return EventServices(
        channels=channels,
        hooks=hooks,
        webhooks=webhooks,
        quick=partial(_user_commands, config.quick_commands.parsed(), plugins, runner),
        boot=boot,
        plugins=plugins.listed(),
    )


def _user_commands(parsed: Sequence[QuickCommand], plugins: Plugins, runner: HookRunner) -> UserCommands:
    from hermes.services.events.quick_commands import QuickCommands  # noqa: PLC0415 - an idle daemon runs none

    quick = QuickCommands(parsed, runner=runner)
    if not plugins.commands:
        return quick
    from hermes.services.events.plugin_commands import PluginCommands, SeveralCommands  # noqa: PLC0415

    return SeveralCommands(quick, PluginCommands(plugins.commands))


def _secret(base: Foundation, route: WebhookRoute) -> bytes:
    """Return the secret of a route, which no log shows from now on."""
    secret = secret_of(route, base.environ, base.home.config_file.parent)
    if secret:
        redact(Secret(secret.decode("utf-8", "replace")))
    return secret


def boot_settings(boot: BootConfig) -> BootSettings:
    return BootSettings(
        enabled=boot.enabled,
        deliver=boot.deliver,
        toolset=boot.toolset,
        model=boot.model,
        max_steps=boot.max_steps,
        max_tokens=boot.max_tokens,
    )
