"""Settings of the actor system, from the configuration."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.actors.process.process_services import ProcessSettings
from hermes.actors.reset.reset_rules import ResetSettings
from hermes.actors.reset.reset_scheduler import EVERY_S
from hermes.app.actor_system import SystemSettings
from hermes.app.factories.models import review_model
from hermes.app.job_system import job_settings
from hermes.config.reset_override import CHAT_TYPES, ResetOverride, parse_override
from hermes.config.settings import Config, SessionResetConfig
from hermes.config.time_zone import find_zone
from hermes.domain.cause.cause import HoldCause
from hermes.domain.directory.directory_settings import DirectorySettings
from hermes.domain.reset_policy import OnStale, PolicyBook, ResetMode, ResetPolicy
from hermes.domain.session.protocol import ReviewTerms, TurnLimits
from hermes.domain.turn.submission import Busy
from hermes.domain.values import replace
from hermes.services.processes import staleness_of
from hermes.system.clock import pace

_RESUME_PER_S = 50.0  # sessions that a start takes up in a second, those that waited longest first


def system_settings(config: Config, environ: Mapping[str, str], *, take_up: bool = False) -> SystemSettings:
    """Return the settings. `take_up`: continue the work that earlier boots left open."""
    return SystemSettings(
        jobs=job_settings(config, environ),
        directory=directory_settings(config, take_up=take_up),
        resets=reset_settings(config, environ),
        processes=process_settings(config),
        reset_every_s=pace(EVERY_S),
        keep_s=config.sessions.retention_days * 86400.0 if config.sessions.auto_prune else None,
    )


def directory_settings(config: Config, *, take_up: bool) -> DirectorySettings:
    return DirectorySettings(
        idle_after_s=config.sessions.idle_after_s,
        max_live=config.sessions.max_live,
        limits=TurnLimits(
            max_queue=config.sessions.max_queue,
            max_replies=config.agent.max_turns,
            review=review_terms(config),
            busy=Busy(config.agent.busy_input_mode),
            admins=frozenset(
                (name, user) for name, settings in config.platforms().items() for user in settings.admins
            ),
        ),
        memory_limit_bytes=config.sessions.memory_limit_mb << 20,
        seen_for_s=config.storage.inbox_days * 86400.0,
        take_up=take_up,
        hold=HoldCause.CONFIGURED if config.resume.when == "next_message" else HoldCause.NONE,
        resume_per_s=_RESUME_PER_S,
    )


def review_terms(config: Config) -> ReviewTerms:
    if review_model(config) is None:
        return ReviewTerms()
    return ReviewTerms(turns=config.memory.nudge_interval, calls=config.skills.creation_nudge_interval)


def process_settings(config: Config) -> ProcessSettings:
    processes = config.processes
    return ProcessSettings(
        max_per_session=processes.max_per_session,
        max_total=processes.max_total,
        heartbeat_s=pace(processes.heartbeat_s),
        stale_after_s=processes.stale_after_minutes * 60,
        max_age_s=processes.max_age_hours * 3600,
    )


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
