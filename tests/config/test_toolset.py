"""Names of tools in settings match the tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from hermes.agent.prompt import GUIDANCE
from hermes.app.factories import turn_environment
from hermes.config.home import Home
from hermes.config.settings import Config, ToolsConfig
from hermes.config.toolset import EVERY_TOOLSET, TOOLSETS, complaint_about_tool
from hermes.config.work_settings import ImageGenConfig, WebConfig
from hermes.sandbox.sandbox import open_sandbox
from hermes.sandbox.sandbox_plan import SandboxRules
from hermes.skills.library import SkillLibrary
from hermes.tools.send_message import send_message_tool


def test_every_tool_is_listed_in_its_toolset(tmp_path: Path) -> None:
    home = Home(data_dir=tmp_path, config_file=tmp_path / "config.yaml")
    names = ("stored", "processes", "memories", "skills", "delegations", "jobs", "inner")
    given: dict[str, Any] = {name: MagicMock() for name in names}
    given["sandbox"] = open_sandbox(SandboxRules(), home=str(tmp_path), enabled=False)
    given["network"] = None
    given["library"] = SkillLibrary(tmp_path)
    given["messaging"] = send_message_tool(MagicMock(), MagicMock())
    web = WebConfig(search_provider="searxng", search_base_url="http://127.0.0.1:8888")
    pictures = ImageGenConfig(base_url="http://127.0.0.1:1/v1")
    config = Config(tools=ToolsConfig(default=tuple(TOOLSETS)), web=web, image_gen=pictures)
    toolbox = turn_environment.make_toolbox(config, home, {}, **given)
    found: dict[str, set[str]] = {}
    for name in toolbox.names("telegram"):
        tool = toolbox.get(name, "telegram")
        assert tool is not None
        found.setdefault(tool.toolset, set()).add(name)
    assert found == {toolset: set(tools) for toolset, tools in TOOLSETS.items() if toolset != "mcp"}
    assert set(EVERY_TOOLSET) < set(TOOLSETS)


def test_a_name_may_be_that_of_a_tool_or_a_toolset() -> None:
    assert [complaint_about_tool(name) for name in ("file", "read_file")] == ["", ""]
    assert complaint_about_tool("reed_file").endswith("did you mean read_file?")
    assert all(name in complaint_about_tool("quux") for name in TOOLSETS)


def test_guidance_in_the_prompt_is_for_tools_that_exist() -> None:
    assert set(GUIDANCE) <= {tool for tools in TOOLSETS.values() for tool in tools}
