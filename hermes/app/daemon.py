"""Running daemon: stop it, or reload its configuration."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from loguru import logger

from hermes.actors.kernel.ref import ActorDeadError
from hermes.agent.models.model_set import ModelSet
from hermes.app.actor_system import ActorSystem
from hermes.app.factories.agent import AgentParts
from hermes.app.factories.models import make_models
from hermes.app.factories.preflight import preflight
from hermes.app.operations import DaemonOperations
from hermes.app.reload import Reloaded, changes, with_values
from hermes.app.secret_files import digests, in_force, rewritten
from hermes.app.shutdown_effects import DaemonShutdown
from hermes.app.system_settings import are_there_resets, system_settings
from hermes.config.home import Home
from hermes.config.log import configure_logging
from hermes.config.settings import Config
from hermes.domain.errors import ConfigError
from hermes.supervision.root import ShutDown
from hermes.supervision.shutdown import StopRequest

if TYPE_CHECKING:
    from hermes.adapters.openai_api.server import ApiServer


@dataclass(slots=True, kw_only=True)
class Daemon:
    """Running parts that a stop and a reload need."""

    home: Home
    config: Config
    environ: Mapping[str, str]
    facts: dict[str, Any]
    secrets: dict[str, str]  # digests of secret files, by setting
    system: ActorSystem
    agent: AgentParts
    operations: DaemonOperations
    shutdown: DaemonShutdown
    api: ApiServer | None
    reloading: asyncio.Lock = field(default_factory=asyncio.Lock)  # one at a time

    def request_stop(self, request: StopRequest) -> None:
        """Send the request to the root actor, which drives the shutdown."""
        assert self.system.root is not None
        try:
            self.system.root.tell(ShutDown(request=request, effects=self.shutdown))
        except ActorDeadError:
            logger.error("shutdown: the root actor is dead; stopping without it")
            self.shutdown.abandon()

    async def stop(self, request: StopRequest) -> None:
        """Stop everything but the store and the lock."""
        self.request_stop(request)
        await self.shutdown.finished

    async def reload(self, *, dry_run: bool = False) -> Reloaded:
        """Read the configuration again and apply the settings that can change at run time. Raises ConfigError.

        A dry run only compares the files with what is in effect.
        """
        async with self.reloading:
            try:
                new = (await asyncio.to_thread(preflight, self.home, self.environ)).config
                secrets = await asyncio.to_thread(digests, self.home, new, self.environ)  # before the files are used
                models = await asyncio.to_thread(make_models, new, self.environ)
            except ConfigError as error:
                if not dry_run:
                    logger.error("configuration not reloaded, the old one stays: {}", error)
                raise
            return self._compared(new, secrets) if dry_run else self._apply(new, models, secrets)

    def _compared(self, new: Config, secrets: dict[str, str]) -> Reloaded:
        applied, later = Config.reloadable_changes(self.config, new)
        return Reloaded(
            applied=changes(self.config, new, applied),
            needs_restart=changes(self.config, new, later),
            files=rewritten(self.secrets, secrets, dict.fromkeys((*applied, *later))),
        )

    def _apply(self, new: Config, models: ModelSet, secrets: dict[str, str]) -> Reloaded:
        reloaded = self._compared(new, secrets)
        applied, later, files = reloaded.applied, reloaded.needs_restart, reloaded.files
        self.secrets = in_force(self.secrets, secrets)
        if any(name.startswith("model.") for name in (*applied, *files.applied)):
            self.agent.runner.set_models(models)
            self.facts["model"] = models.chain[0].name
        self.agent.configure(new)
        if "log.level" in applied:
            configure_logging(new.log, self.home)
        if self.api is not None:
            self.api.set_cors_origins(new.api.cors_origins)
        self.system.configure(system_settings(new, self.environ, take_up=True))
        self.facts["resets"] = are_there_resets(new.session_reset)
        # Settings that need a restart keep their old value, so that the next reload reports them again.
        self.config = self.shutdown.config = with_values(self.config, new, applied)
        logger.info("configuration reloaded: {}", ", ".join((*applied, *files.applied)) or "nothing changed")
        if later or files.needs_restart:
            logger.warning("these settings need a restart: {}", ", ".join((*later, *files.needs_restart)))
        return reloaded
