"""Scope of memory: whose notes a conversation reads and writes. Pure.

The owner, each other person and each shared chat have a scope of their own. A conversation of one person uses that
person's scope. A conversation that several people share uses the scope of its chat, which has no notes about a
person. Nothing of one scope enters the prompt of another one.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from enum import StrEnum
from hashlib import blake2b

from hermes.domain.access.role import OWNER_SURFACES, Role
from hermes.domain.access.visibility import is_personal
from hermes.domain.errors import BadInputError
from hermes.domain.session.state import Session
from hermes.domain.values import dataclass

PREFIX = "memory/"  # of the subjects in the change log
PROPOSALS = "memory-proposals/"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_SLUG_CHARS = 40


class MemoryTarget(StrEnum):
    MEMORY = "memory"  # notes of the agent
    USER = "user"  # what is known about the person

    @property
    def file_name(self) -> str:
        return f"{self.value.upper()}.md"


class ScopeKind(StrEnum):
    OWNER = "owner"
    PERSON = "person"
    CHAT = "chat"


_FOLDERS = {ScopeKind.PERSON: "people", ScopeKind.CHAT: "chats"}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryScope:
    kind: ScopeKind
    name: str = ""  # PLATFORM:USER or PLATFORM:CHAT; empty for the owner
    only_owner: bool = False  # the conversation moved between chats: only accounts of the owner keep their memory

    @property
    def text(self) -> str:
        """Return the scope as a person writes it: `owner`, `person:telegram:7`, `chat:telegram:-100`."""
        return f"{self.kind}:{self.name}" if self.name else self.kind.value

    @property
    def folder(self) -> str:
        """Return the folder below `memories`; empty for the owner. A hash makes it unique."""
        if self.kind is ScopeKind.OWNER:
            return ""
        slug = _UNSAFE.sub("-", self.name)[:_SLUG_CHARS].strip(".-")
        digest = blake2b(self.name.encode(errors="replace"), digest_size=6).hexdigest()
        return f"{_FOLDERS[self.kind]}/{slug}-{digest}".replace("/-", "/")

    @property
    def targets(self) -> tuple[MemoryTarget, ...]:
        return (MemoryTarget.MEMORY,) if self.kind is ScopeKind.CHAT else tuple(MemoryTarget)

    def subject(self, target: MemoryTarget) -> str:
        return f"{PREFIX}{self.folder or 'owner'}/{target}"

    @property
    def proposals(self) -> str:
        """Return the subject of the changes that wait for an approval."""
        return f"{PROPOSALS}{self.folder or 'owner'}"


OWNER_SCOPE = MemoryScope(kind=ScopeKind.OWNER)


def parse_scope(text: str) -> MemoryScope:
    """Parse `owner`, `PLATFORM:USER`, `person:PLATFORM:USER` or `chat:PLATFORM:CHAT`. Raises BadInputError."""
    if text in ("", ScopeKind.OWNER):
        return OWNER_SCOPE
    kind, _, name = text.partition(":")
    if kind not in (ScopeKind.PERSON, ScopeKind.CHAT):
        kind, name = ScopeKind.PERSON, text
    platform, _, user = name.partition(":")
    if not platform or not user:
        raise BadInputError(
            f"{text[:80]!r} is not a person; use owner, PLATFORM:USER or chat:PLATFORM:CHAT", code="invalid_person"
        )
    return MemoryScope(kind=ScopeKind(kind), name=name)


def scope_in(session: Session, role: Role, by: str) -> MemoryScope | None:
    """Return the scope of a turn of that role and person in a session; None: the turn has no memory."""
    if session.assignment is not None and session.assignment.memory:
        return parse_scope(session.assignment.memory)
    if not _is_private(session):
        place = session.place
        return None if place is None else MemoryScope(kind=ScopeKind.CHAT, name=f"{place.platform}:{place.chat}")
    platform, _, user = by.partition(":")
    moved = session.handover is not None
    if session.platform in OWNER_SURFACES:
        if role is Role.OWNER and platform in ("", *OWNER_SURFACES):
            return OWNER_SCOPE
        return MemoryScope(kind=ScopeKind.PERSON, name=by, only_owner=True) if user and moved else None
    theirs = f"{session.platform}:{session.owner}" if session.owner else ""
    if user and by != theirs and not moved:
        return None  # somebody else takes part in the conversation of a person
    name = by if user else theirs
    return MemoryScope(kind=ScopeKind.PERSON, name=name, only_owner=moved) if name else None


def resolved(scope: MemoryScope | None, owner_accounts: Collection[str]) -> MemoryScope | None:
    """Return the owner's scope for an account that the owner has named as theirs."""
    if scope is None or scope.kind is not ScopeKind.PERSON:
        return scope
    if scope.name in owner_accounts:
        return OWNER_SCOPE
    return None if scope.only_owner else scope


def _is_private(session: Session) -> bool:
    """Return whether only one person writes in the session."""
    if session.handover is not None:
        return ":dm:" in session.handover.key
    if session.company is not None and session.company.shared:
        return False
    return session.place is None or is_personal(session)
