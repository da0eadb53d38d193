"""Factory of the skill service."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.actors.process.process_services import Announcement
from hermes.app.actor_system import ActorSystem
from hermes.config.home import Home
from hermes.config.settings import Config
from hermes.domain.ids import SessionId
from hermes.domain.skill.curation import CurationTerms
from hermes.services.learning.skill_service import SkillService, SkillSettings


def make_skills(config: Config, home: Home, environ: Mapping[str, str], *, system: ActorSystem) -> SkillService:
    passed = [name for name in config.terminal.pass_variables if environ.get(name)]

    async def tell(session: SessionId, name: str, text: str) -> None:
        await system.notices.announce(Announcement(id=name, session=session, text=text))

    return SkillService(
        home.skills_dir,
        journal=system.ports.journal,
        clock=system.ports.clock,
        environment=passed,
        settings=skill_settings(config),
        tell=tell,
    )


def skill_settings(config: Config) -> SkillSettings:
    skills = config.skills
    terms = CurationTerms(stale_days=skills.stale_days, archive_days=skills.archive_days)
    return SkillSettings(
        index_max_chars=skills.index_max_chars,
        trusted_sources=skills.trusted_sources,
        write_approval=skills.write_approval,
        rollback=skills.rollback,
        curation=terms if skills.curator else None,
        consolidate=skills.consolidate,
    )
