"""Factory of reviews of conversations, and of the consolidation of skills."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hermes.app.actor_system import ActorSystem
from hermes.app.factories.agent import AgentParts
from hermes.domain.access.role import Role
from hermes.domain.child.child import ChildDuty, Purpose, child_id
from hermes.domain.skill.skill import SkillError
from hermes.domain.source import Source
from hermes.services.children.consolidation_purpose import ConsolidationPurpose
from hermes.services.children.review_purpose import ReviewPurpose
from hermes.services.learning.skill_service import SkillService
from hermes.system.random_id import new_marker


def register_reviews(system: ActorSystem, agent: AgentParts, skills: SkillService) -> None:
    """Let the child sessions of the system review conversations."""
    purpose = ReviewPurpose(
        sessions=system.sessions,
        heads=system.sessions.heads,
        hub=system.ports.hub,
        clock=system.ports.clock,
        settings=lambda: agent.review,
        available=agent.tool_names,
        marker=new_marker,
        memories=agent.memories,
        skills=skills,
    )
    system.child_sessions.register(Purpose.REVIEW, purpose)
    system.child_sessions.register(
        Purpose.CONSOLIDATION, ConsolidationPurpose(skills, settings=lambda: agent.review, marker=new_marker)
    )
    skills.consolidator = partial(_consolidate, system, agent)


async def _consolidate(system: ActorSystem, agent: AgentParts, key: str, names: Sequence[str], at: float) -> str:
    """Start a consolidation, unless these versions had one. Return the id of its session."""
    if agent.review.off:
        raise SkillError("reviews are off: auxiliary.review names no model for this")
    duty = ChildDuty(
        key=f"{Purpose.CONSOLIDATION}:{key}",
        child=child_id(key, at),
        purpose=Purpose.CONSOLIDATION,
        source=Source(platform="cli", automatic=True, role=Role.OWNER),
        topics=tuple(names),
    )
    if duty.child not in await system.sessions.heads([duty.child]):
        await system.child_sessions.request(duty)
    return duty.child
