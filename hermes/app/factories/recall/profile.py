"""Factory of the person model: the built-in one or Honcho, and its section of the prompt."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from loguru import logger

from hermes.app.actor_system import ActorSystem
from hermes.config.settings import Config
from hermes.domain.access.role import Role
from hermes.domain.errors import ConfigError, HermesError
from hermes.services.profile.profile_service import ProfileService, ProfileSettings
from hermes.system.extra import install_line
from hermes.system.random_id import new_marker

if TYPE_CHECKING:
    from hermes.domain.session.jobs import ModelJob
    from hermes.ports.profile import PersonModel
    from hermes.services.side_completion import SideCompletion


WITHIN_S: Final = 5.0  # to read beliefs for a prompt


def profile_settings(config: Config) -> ProfileSettings:
    profile = config.profile
    return ProfileSettings(
        provider=profile.provider,
        every=profile.every,
        prompt_chars=profile.prompt_chars,
        owner_accounts=config.memory.owner_accounts,
    )


def make_profile(
    config: Config,
    environ: Mapping[str, str],
    *,
    system: ActorSystem,
    side: Callable[[], SideCompletion],
    model: Callable[[], str],
) -> ProfileService:
    """Return the service. `side` and `model` are called later, when the agent is there."""
    person_model = _person_model(config, environ, system=system, side=side, model=model)
    return ProfileService(
        sessions=system.sessions,
        heads=system.sessions.heads,
        model=person_model,
        settings=profile_settings(config),
    )


def _person_model(
    config: Config,
    environ: Mapping[str, str],
    *,
    system: ActorSystem,
    side: Callable[[], SideCompletion],
    model: Callable[[], str],
) -> PersonModel | None:
    if config.profile.provider == "builtin":
        from hermes.services.profile.built_in_model import BuiltInPersonModel  # noqa: PLC0415 - off by default
        from hermes.services.profile.dialectic import Dialectic  # noqa: PLC0415

        conclude = Dialectic(side=side, model=model, new_turn_id=system.ports.ids.turn, marker=new_marker)
        return BuiltInPersonModel(journal=system.ports.journal, clock=system.ports.clock, conclude=conclude)
    if config.profile.provider == "honcho":
        if find_spec("honcho") is None:
            raise ConfigError(f"profile.provider is honcho, and the extra is missing: {install_line('honcho')}")
        from hermes.services.profile.honcho_model import HonchoPersonModel  # noqa: PLC0415 - off by default

        return HonchoPersonModel(
            api_key=environ.get("HONCHO_API_KEY", "").strip(),
            base_url=config.profile.honcho_url,
            workspace=config.profile.honcho_workspace,
        )
    return None


def believed(profile: ProfileService) -> Callable[[ModelJob], Awaitable[str]]:
    """Return a function that makes the section of a prompt with the beliefs about the person of a turn."""

    async def section(job: ModelJob) -> str:
        scope = profile.scope(job.scope)
        if scope is None or job.assignment is not None or not job.role.includes(Role.USER):
            return ""
        from hermes.services.profile.profile_block import profile_block  # noqa: PLC0415 - off by default

        try:
            async with asyncio.timeout(WITHIN_S):
                return profile_block(await profile.beliefs(scope), profile.settings.prompt_chars)
        except (HermesError, TimeoutError) as error:
            reason = str(error) or "it took too long"
            logger.warning("session {}: its prompt has no beliefs about the person: {}", job.session, reason)
            return ""

    return section
