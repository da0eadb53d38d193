"""Topics of a review, and the tools that it has for them."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class ReviewTopic(StrEnum):
    """Subject of a review."""

    MEMORY = "memory"
    SKILLS = "skills"


TOOLS: Final = {
    ReviewTopic.MEMORY: ("memory",),
    ReviewTopic.SKILLS: ("skills_list", "skill_view", "skill_manage"),
}
SKILL_TOOLS: Final = frozenset({"skill_view", "skill_manage"})  # a call of one starts the count of calls again
