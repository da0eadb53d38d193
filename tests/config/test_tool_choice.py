"""Choice of tools."""

from __future__ import annotations

from hermes.config.settings import ToolsConfig
from hermes.config.tool_choice import chosen, disabling, enabling

CONFIG = ToolsConfig(default=("terminal", "file"), api=("file",), cli=("terminal",), guest=(), disabled=())


def test_disabled_tools_are_off_everywhere() -> None:
    changes = disabling(CONFIG, "patch", "")
    assert changes == {"tools.disabled": ("patch",)}
    config = ToolsConfig(default=("terminal", "file"), disabled=("patch", "terminal"))
    assert chosen(config, "default") == {"read_file", "write_file", "search_files"}
    assert disabling(config, "terminal", "") == {}


def test_one_tool_of_a_set_can_go_from_one_surface() -> None:
    assert disabling(CONFIG, "patch", "api") == {"tools.api": ("read_file", "write_file", "search_files")}
    assert disabling(CONFIG, "patch", "cli") == {}


def test_enabling_undoes_disabling() -> None:
    config = ToolsConfig(default=("terminal", "file"), api=(), cli=(), guest=(), disabled=("file", "terminal"))
    assert enabling(config, "patch", "") == {
        "tools.disabled": ("read_file", "write_file", "search_files", "terminal"),
    }
    assert enabling(CONFIG, "terminal", "") == {}
    assert enabling(CONFIG, "terminal", "guest") == {"tools.guest": ("terminal",)}
    assert enabling(CONFIG, "web", "") == {"tools.default": ("terminal", "file", "web")}
