from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import AsyncMock

import pytest

from hermes.domain.access.role import Role
from hermes.domain.values import replace
from hermes.skills.library import SkillLibrary
from hermes.tools.skill_tools import skill_tools, viewed_in
from hermes.tools.tool import ToolError
from tests.skills.test_catalog import write_skill
from tests.tools.workbench import a_context


async def test_viewed_skills_are_remembered_with_version_and_turn(tmp_path: Path) -> None:
    folder = write_skill(tmp_path / "skills", "pdf")
    _, view, _ = skill_tools(SkillLibrary(tmp_path / "skills"), AsyncMock(), lambda *_: ("skills",))
    context = a_context(tmp_path / "conversation")
    assert await asyncio.to_thread(viewed_in, context.folder) == {}
    assert "Do it." in str(await view.run(context, name="pdf"))
    first = (await asyncio.to_thread(viewed_in, context.folder))["pdf"]
    assert first["turn"] == "t"
    (folder / "new.md").write_text("x", encoding="utf-8")
    await view.run(context, name="pdf")
    assert (await asyncio.to_thread(viewed_in, context.folder))["pdf"]["digest"] != first["digest"]


async def test_conditions_follow_the_tools_of_the_person(tmp_path: Path) -> None:
    folder = tmp_path / "skills" / "deploy"
    folder.mkdir(parents=True)
    text = "---\nname: deploy\ndescription: Deploys.\nmetadata:\n  requires-toolsets: terminal\n---\nDo it.\n"
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    tools = {Role.OWNER: ("terminal", "skills"), Role.USER: ("skills",)}
    listing, view, _ = skill_tools(SkillLibrary(tmp_path / "skills"), AsyncMock(), lambda _, role: tools[role])
    context = a_context(tmp_path / "conversation")
    assert "- deploy: Deploys." in str(await listing.run(context))
    user = replace(context, role=Role.USER)
    assert "needs the tools terminal" in str(await listing.run(user))
    with pytest.raises(ToolError):
        await view.run(user, name="deploy")
