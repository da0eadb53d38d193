"""Settings of the session directory, from the configuration and the boot record."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from hermes.actors.directory_protocol import Configure
from hermes.actors.kernel.ref import ActorDeadError
from hermes.config.settings import Config
from hermes.domain.cause import HoldCause
from hermes.domain.directory.settings import DirectorySettings
from hermes.domain.session.protocol import TurnLimits
from hermes.domain.submission import Busy
from hermes.supervision.root import Children

_RESUME_PER_S = 50.0  # sessions that a start takes up in a second, those that waited longest first


class DirectoryConfiguration:
    """Current settings, sent to the running directory and used for the next one after a crash."""

    def __init__(self, children: Children, settings: DirectorySettings) -> None:
        self._children = children
        self._configured = settings
        self._boot_loop = False

    @property
    def settings(self) -> DirectorySettings:
        return replace(self._configured, hold=HoldCause.CRASHES if self._boot_loop else self._configured.hold)

    def set(self, settings: DirectorySettings) -> None:
        self._configured = settings
        self._send()

    def hold(self, *, boot_loop: bool) -> None:
        """In a boot loop, interrupted turns wait for a message, whatever is configured."""
        self._boot_loop = boot_loop
        self._send()

    def _send(self) -> None:
        with suppress(ActorDeadError):  # restarting: the next one starts with them
            self._children["directory"].tell(Configure(settings=self.settings))


def directory_settings(config: Config, *, take_up: bool = False) -> DirectorySettings:
    return DirectorySettings(
        idle_after_s=config.sessions.idle_after_s,
        max_live=config.sessions.max_live,
        limits=TurnLimits(
            max_queue=config.sessions.max_queue,
            max_replies=config.agent.max_turns,
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
