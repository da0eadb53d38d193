"""Request of an operator about skills, and the answer to it: the same from the admin socket and without a daemon."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from pathlib import Path
from typing import Any

from hermes.domain.skill.skill_policy import tier_of
from hermes.domain.values import dataclass
from hermes.services.learning.skill_operations import InstallWish, person
from hermes.services.learning.skill_service import SkillService


class SkillVerb(StrEnum):
    LIST = "list"
    SHOW = "show"
    INSTALL = "install"
    REMOVE = "remove"
    AUDIT = "audit"
    STATS = "stats"
    LOG = "log"
    DIFF = "diff"
    REVERT = "revert"
    ENABLE = "enable"
    DISABLE = "disable"
    PIN = "pin"
    UNPIN = "unpin"
    FILES = "files"
    APPROVE = "approve"
    REJECT = "reject"
    REPORT = "report"
    CONSOLIDATE = "consolidate"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillRequest:
    verb: SkillVerb
    name: str = ""
    number: int = 0
    folder: str = ""
    source: Mapping[str, str] = field(default_factory=dict)
    category: str = ""
    agreed: bool = False
    forced: bool = False
    update: bool = False


async def perform(service: SkillService, asked: SkillRequest) -> dict[str, Any]:
    """Do what was asked. Raises SkillError."""
    do, name = service.operations, asked.name
    match asked.verb:
        case SkillVerb.LIST:
            return await do.listed()
        case SkillVerb.SHOW:
            return await do.show(name)
        case SkillVerb.AUDIT:
            return await do.audit([name] if name else ())
        case SkillVerb.STATS:
            return await do.stats(name)
        case SkillVerb.LOG:
            return await do.log(name)
        case SkillVerb.DIFF:
            return await do.diff(name, asked.number)
        case SkillVerb.FILES:
            return await do.files(name)
        case SkillVerb.REPORT:
            return await service.report()
        case SkillVerb.CONSOLIDATE:
            return await service.consolidate()
        case SkillVerb.INSTALL:
            return await _install(service, asked)
    return await _change(service, asked)


async def _change(service: SkillService, asked: SkillRequest) -> dict[str, Any]:
    do, name = service.operations, asked.name
    origin = person(asked.verb.value, "cli")
    match asked.verb:
        case SkillVerb.REMOVE:
            change = await do.remove(name, origin)
        case SkillVerb.REVERT:
            change = await do.revert(name, asked.number, origin)
        case SkillVerb.APPROVE:
            change = await service.editor.approve(name, asked.number, origin)
        case SkillVerb.REJECT:
            change = await service.editor.reject(name, asked.number, origin)
        case SkillVerb.ENABLE | SkillVerb.DISABLE:
            await do.switch(name, enabled=asked.verb is SkillVerb.ENABLE)
            return {"name": name, "enabled": asked.verb is SkillVerb.ENABLE}
        case _:
            await do.switch(name, pinned=asked.verb is SkillVerb.PIN)
            return {"name": name, "pinned": asked.verb is SkillVerb.PIN}
    return {"name": name, "number": change.number, "action": change.action.value}


async def _install(service: SkillService, asked: SkillRequest) -> dict[str, Any]:
    address = asked.source.get("address", "")
    is_remote = asked.source.get("kind") in ("git", "url")
    wish = InstallWish(
        folder=Path(asked.folder),
        source=asked.source,
        tier=tier_of(address, is_remote=is_remote, trusted=service.settings.trusted_sources),
        category=asked.category,
        agreed=asked.agreed,
        forced=asked.forced,
        update=asked.update,
        at=time.time(),
    )
    return await service.operations.install(wish, person("install", "cli"))
