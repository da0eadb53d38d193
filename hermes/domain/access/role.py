"""Roles of people on this daemon."""

from __future__ import annotations

from enum import StrEnum

OWNER_SURFACES = ("admin", "api", "cli", "terminal")  # only the owner of this daemon reaches them


class Role(StrEnum):
    OWNER = "owner"  # runs the daemon: terminal, admin socket, main API key
    ADMIN = "admin"  # named by the owner: approves, restarts, chooses the home channel
    USER = "user"  # named in allowed_users: full toolset, inside the sandbox
    GUEST = "guest"  # paired, or a member of an open group: no terminal and no files by default

    @property
    def approves(self) -> bool:
        """Return whether this role may approve calls outside the sandbox and standing grants."""
        return self in (Role.OWNER, Role.ADMIN)

    def includes(self, other: Role) -> bool:
        """Return whether this role has every right of the other one."""
        return _RANK[self] >= _RANK[other]


_RANK = {role: rank for rank, role in enumerate(reversed(Role))}


def lowest(*roles: Role) -> Role:
    return min(roles, key=_RANK.__getitem__)


def assumed(platform: str) -> Role:
    """Return the role for a message that was stored before there were roles."""
    return Role.OWNER if platform in OWNER_SURFACES else Role.GUEST
