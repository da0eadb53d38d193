"""Factory of the skill service."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.config.home import Home
from hermes.config.settings import Config
from hermes.services.skills import SkillService


def make_skills(config: Config, home: Home, environ: Mapping[str, str]) -> SkillService:
    passed = [name for name in config.terminal.pass_variables if environ.get(name)]
    return SkillService(home.skills_dir, environment=passed, index_max_chars=config.skills.index_max_chars)
