"""Factory of reviews."""

from __future__ import annotations

from hermes.app.actor_system import ActorSystem
from hermes.app.factories.agent import AgentParts
from hermes.domain.child.child import Purpose
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
