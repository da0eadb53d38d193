"""Roles: what a person may do on this daemon."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    OWNER = "owner"  # runs the daemon: terminal, admin socket, main API key
    ADMIN = "admin"  # named by the owner: approves, restarts, chooses the home channel
    USER = "user"  # named in allowed_users: full toolset, inside the sandbox
    GUEST = "guest"  # paired, or a member of an open group: no terminal and no files by default

    @property
    def approves(self) -> bool:
        """Whether this role may allow what leaves the sandbox, and what holds for longer than one call."""
        return self in (Role.OWNER, Role.ADMIN)
