"""Report of what fills a context window, by part."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from hermes.domain.values import dataclass


class ContextPart(StrEnum):
    """Parts of a model request, in their order."""

    IDENTITY = "identity"  # SOUL.md, or the built-in one
    RULES = "rules"  # about untrusted text
    GUIDANCE = "guidance"  # about working with tools
    SKILLS = "skills"  # the index
    SURFACE = "surface"  # about the platform
    MANNER = "manner"  # the personality
    PROJECT = "project"  # prompt files of the working directory
    MEMORY = "memory"
    NOW = "now"  # date, model, chat, session
    INSTRUCTIONS = "instructions"  # of the client
    TOOLS = "tools"  # their definitions
    PEOPLE = "people"  # messages of people
    NOTES = "notes"  # messages by Hermes itself, such as summaries
    ANSWERS = "answers"  # of the model, with its tool calls
    RESULTS = "results"  # of tools


WORDS = {
    ContextPart.IDENTITY: "Identity",
    ContextPart.RULES: "Rules about untrusted text",
    ContextPart.GUIDANCE: "Guidance about tools",
    ContextPart.SKILLS: "List of skills",
    ContextPart.SURFACE: "Platform",
    ContextPart.MANNER: "Personality",
    ContextPart.PROJECT: "Project files",
    ContextPart.MEMORY: "Memory",
    ContextPart.NOW: "Date and place",
    ContextPart.INSTRUCTIONS: "Client's instructions",
    ContextPart.TOOLS: "Definitions of tools",
    ContextPart.PEOPLE: "Messages of people",
    ContextPart.NOTES: "Notes and summaries",
    ContextPart.ANSWERS: "Answers and tool calls",
    ContextPart.RESULTS: "Results of tools",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PartSize:
    part: ContextPart
    tokens: int  # an estimate
    items: int = 1  # messages or tools


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextReport:
    session: str
    parts: tuple[PartSize, ...]  # those that are not empty, in the order of the request
    window: int  # of the model; 0: unknown
    counted: int  # by the provider, for the last request; 0: there was none

    @property
    def estimated(self) -> int:
        return sum(each.tokens for each in self.parts)

    def plain(self) -> dict[str, Any]:
        return {
            "session_id": self.session,
            "window": self.window,
            "counted": self.counted,
            "estimated": self.estimated,
            "parts": [{"part": each.part, "tokens": each.tokens, "items": each.items} for each in self.parts],
        }
