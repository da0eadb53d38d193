"""Names of toolsets and their tools, as used in settings.

They are repeated here because importing the tools is slow. A test compares both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.domain.mcp.tool_name import is_mcp_name

if TYPE_CHECKING:
    from collections.abc import Mapping

GUEST_TOOLSETS = ("web", "todo", "clarify", "session_search")
EVERY_TOOLSET = (
    "terminal",
    "file",
    "web",
    "search",
    "todo",
    "memory",
    "clarify",
    "session_search",
    "process",
    "skills",
    "delegation",
    "cronjob",
    "code_execution",
    "mcp",
)
TOOLSETS: Mapping[str, tuple[str, ...]] = {
    "terminal": ("terminal",),
    "file": ("read_file", "write_file", "patch", "search_files"),
    "web": ("web_fetch",),
    "search": ("web_search",),  # only with web.search_provider
    "todo": ("todo",),
    "memory": ("memory",),
    "clarify": ("clarify",),
    "session_search": ("session_search",),
    "process": ("process",),
    "send_file": ("send_file",),
    "image_gen": ("image_generate",),  # only with image_gen.base_url
    "delegation": ("delegate_task",),
    "messaging": ("send_message",),
    "code_execution": ("execute_code",),
    "skills": ("skills_list", "skill_view", "skill_manage"),
    "cronjob": ("cronjob",),
    "mcp": (),  # the tools of MCP servers, mcp__SERVER__TOOL; those of one server are mcp__SERVER
}


def complaint_about_tool(name: str) -> str:
    """Return the problem of the name of a tool or toolset; empty if it is valid."""
    known = {*TOOLSETS, *(tool for tools in TOOLSETS.values() for tool in tools)}
    if name in known or is_mcp_name(name):
        return ""
    from difflib import get_close_matches  # noqa: PLC0415 - only for mistakes

    near = get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known names: {', '.join(sorted(known))}"
    return f"there is no tool or toolset {name[:40]!r}; {hint}"
