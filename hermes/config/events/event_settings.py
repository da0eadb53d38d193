"""Settings of what runs without a person's message: BOOT.md, hooks, webhooks; and of quick commands and plugins."""

from __future__ import annotations

from hermes.config.events.entries import complaint_by
from hermes.config.events.hook_entry import parse_hook
from hermes.config.events.quick_entry import parse_quick_command, quick_names_complaint
from hermes.config.events.route_entry import names_complaint, parse_route
from hermes.config.schema import setting, shaped
from hermes.config.toolset import complaint_about_tool
from hermes.domain.event.hook import Hook
from hermes.domain.event.quick_command import QuickCommand
from hermes.domain.event.target import parse_target
from hermes.domain.event.webhook import WebhookRoute
from hermes.domain.values import dataclass

target_complaint = complaint_by(parse_target)
_plugin_complaint = shaped(
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", "must be names of plugins, as `hermes plugins list` shows"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BootConfig:
    enabled: bool = setting(True)
    deliver: tuple[str, ...] = setting(("home",), complaint=target_complaint)
    toolset: tuple[str, ...] = setting(
        ("terminal", "file", "web", "todo", "memory", "session_search", "process", "skills"),
        complaint=complaint_about_tool,
    )
    model: str = setting("")
    max_steps: int = setting(30, least=1, most=10_000)
    max_tokens: int = setting(300_000, least=0, most=10**12)


@dataclass(frozen=True, slots=True, kw_only=True)
class HooksConfig:
    events: tuple[str, ...] = setting((), complaint=complaint_by(parse_hook), entries=True)
    at_once: int = setting(4, least=1, most=100)
    max_waiting: int = setting(1000, least=1, most=1_000_000)

    def parsed(self) -> tuple[Hook, ...]:
        return tuple(map(parse_hook, self.events))


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhooksConfig:
    enabled: bool = setting(True)
    routes: tuple[str, ...] = setting((), complaint=complaint_by(parse_route), together=names_complaint, entries=True)

    def parsed(self) -> tuple[WebhookRoute, ...]:
        return tuple(map(parse_route, self.routes)) if self.enabled else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuickCommandsConfig:
    commands: tuple[str, ...] = setting(
        (), complaint=complaint_by(parse_quick_command), together=quick_names_complaint, entries=True
    )

    def parsed(self) -> tuple[QuickCommand, ...]:
        return tuple(map(parse_quick_command, self.commands))


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginsConfig:
    enabled: tuple[str, ...] = setting((), complaint=_plugin_complaint)
    settings: tuple[str, ...] = setting((), entries=True)
