"""Factory of the purposes of child sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.agent.tool_step import Folders
from hermes.app.actor_system import ActorSystem
from hermes.config.settings import Config
from hermes.config.trust import read_workdir, write_workdir
from hermes.domain.access.role import Role
from hermes.domain.child.child import Purpose
from hermes.domain.goal.goal import GoalTerms
from hermes.domain.ids import SessionId
from hermes.services.children.delegation_purpose import BackgroundPurpose, DelegationPurpose, DelegationSettings
from hermes.services.children.goal_purpose import GoalPurpose
from hermes.system.random_id import new_marker

if TYPE_CHECKING:
    from hermes.app.factories.turn_environment import PreparedTurn


def delegation_settings(config: Config) -> DelegationSettings:
    delegation = config.delegation
    return DelegationSettings(
        model=delegation.model,
        max_iterations=delegation.max_iterations,
        max_concurrent_children=delegation.max_concurrent_children,
        max_spawn_depth=delegation.max_spawn_depth,
        asks=delegation.approvals == "ask",
        detach=delegation.on_parent_end == "detach",
    )


class ChildPurposes:
    """Registers the purposes, and holds their settings."""

    def __init__(
        self,
        config: Config,
        *,
        system: ActorSystem,
        folders: Folders,
        workshop: Callable[[], Awaitable[PreparedTurn]],
    ) -> None:
        self.configure(config)
        self._folders = folders
        self._workshop = workshop
        for purpose, methods in ((Purpose.DELEGATE, DelegationPurpose), (Purpose.BACKGROUND, BackgroundPurpose)):
            subagents = methods(
                sessions=system.sessions,
                heads=system.sessions.heads,
                hub=system.ports.hub,
                clock=system.ports.clock,
                settings=lambda: self.delegation,
                offered=self._offered,
                share=self._share,
            )
            system.child_sessions.register(purpose, subagents)
        self._register_goals(system)

    def configure(self, config: Config) -> None:
        self.delegation = delegation_settings(config)
        self.goal_terms = GoalTerms(max_turns=config.goals.max_turns, max_usd=config.goals.max_usd)
        self.goal_judge = config.auxiliary.goal_judge

    def _register_goals(self, system: ActorSystem) -> None:
        goals = GoalPurpose(
            sessions=system.sessions,
            heads=system.sessions.heads,
            model=lambda: self.goal_judge,
            marker=new_marker,
        )
        system.child_sessions.register(Purpose.GOAL, goals)

    async def _offered(self, platform: str, role: Role, only: tuple[str, ...] | None) -> Mapping[str, str]:
        return (await self._workshop()).toolbox.toolsets(platform, role, only)

    async def _share(self, parent: SessionId, child: SessionId) -> None:
        await asyncio.to_thread(_share, self._folders.path(parent), self._folders.path(child))


def _share(parent: Path, child: Path) -> None:
    """Let the child work in the directory that was chosen for its parent. Without one, it has its own."""
    if (chosen := read_workdir(parent)) is not None:
        write_workdir(child, chosen)
