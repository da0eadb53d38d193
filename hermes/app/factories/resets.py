"""Factory of the reset policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hermes.actors.reset_rules import ResetSettings
from hermes.app.factories.agent import process_settings
from hermes.config.reset_override import CHAT_TYPES, ResetOverride, parse_override
from hermes.config.settings import Config, SessionResetConfig
from hermes.config.time_zone import find_zone
from hermes.domain.ids import SessionId
from hermes.domain.process.process_record import Heartbeat, ProcessView
from hermes.domain.reset_policy import OnStale, PolicyBook, ResetMode, ResetPolicy
from hermes.ports.processes import HeartbeatReceiver
from hermes.services.processes import staleness_of


def reset_settings(config: Config, environ: Mapping[str, str]) -> ResetSettings:
    zone = find_zone(config.session_reset.timezone, environ)
    staleness = staleness_of(process_settings(config))
    return ResetSettings(book=policy_book(config.session_reset), zone=zone, staleness=staleness)


def policy_book(config: SessionResetConfig) -> PolicyBook:
    default = ResetPolicy(
        mode=ResetMode(config.mode),
        idle_minutes=config.idle_minutes,
        at_hour=config.at_hour,
        notify=config.notify,
        notify_exclude_platforms=config.notify_exclude_platforms,
        on_stale=OnStale(config.on_stale),
    )
    policies = {override.where: _overridden(default, override) for override in map(parse_override, config.overrides)}
    return PolicyBook(
        default=default,
        by_platform={where: policy for where, policy in policies.items() if where not in CHAT_TYPES},
        by_type={where: policy for where, policy in policies.items() if where in CHAT_TYPES},
    )


def are_there_resets(config: SessionResetConfig) -> bool:
    """Return whether any conversation could be reset."""
    book = policy_book(config)
    policies = (book.default, *book.by_platform.values(), *book.by_type.values())
    return any(policy.mode is not ResetMode.NONE for policy in policies)


def _overridden(default: ResetPolicy, override: ResetOverride) -> ResetPolicy:
    return replace(
        default,
        mode=ResetMode(override.mode),
        idle_minutes=default.idle_minutes if override.idle_minutes is None else override.idle_minutes,
        at_hour=default.at_hour if override.at_hour is None else override.at_hour,
    )


class LateProcessViews(HeartbeatReceiver):
    """Processes as long as the real list does not exist yet: none."""

    def __init__(self) -> None:
        self.of: HeartbeatReceiver | None = None

    def receive(self, heartbeat: Heartbeat) -> None:
        if self.of is not None:
            self.of.receive(heartbeat)

    def views(self, root: SessionId | None = None) -> tuple[ProcessView, ...]:
        return () if self.of is None else self.of.views(root)
