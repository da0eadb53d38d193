"""`hermes tools`."""

from __future__ import annotations

import json

import pytest

from hermes.cli.main import main
from hermes.config.home import Home
from hermes.config.loader import load_config


def test_tools_are_listed_and_toggled(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.config_file.write_text("# mine\n")
    assert main(["tools", "disable", "web"]) == 0
    assert home.config_file.read_text() == '# mine\n\ntools:\n  disabled: ["web"]\n'
    capsys.readouterr()
    assert main(["tools", "--json"]) == 0
    (web,) = [each for each in json.loads(capsys.readouterr().out)["tools"] if each["toolset"] == "web"]
    assert web == {
        "tool": "web_fetch", "toolset": "web", "default": False, "api": False, "cli": False, "guest": False,
    }  # fmt: skip
    assert main(["tools", "enable", "web", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"changed": {"tools.disabled": []}, "apply_with": None}
    assert main(["tools", "list"]) == 0
    assert "web_fetch       web             yes" in capsys.readouterr().out


def test_a_search_without_a_provider_is_reported(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["not_offered"] == ["web_search", "image_generate"]
    assert main(["tools"]) == 0
    assert "Set web.search_provider to have it." in capsys.readouterr().out
    home.config_file.write_text("web: {search_provider: searxng, search_base_url: http://127.0.0.1:8888}\n")
    assert main(["tools", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["not_offered"] == ["image_generate"]


def test_an_unknown_tool_is_refused_with_a_suggestion(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tools", "disable", "termnal"]) == 78
    assert "did you mean terminal?" in capsys.readouterr().err
    assert not home.config_file.exists()


@pytest.mark.parametrize("tool", ["terminal", "read_file", "process"])
def test_guests_get_tools_of_the_machine_only_with_yes(home: Home, tool: str) -> None:
    assert main(["tools", "enable", tool, "--for", "guest"]) == 78
    assert not home.config_file.exists()
    assert main(["tools", "enable", tool, "--for", "guest", "--yes"]) == 0
    assert tool in load_config(home, {}).tools.guest


def test_a_tool_that_is_off_everywhere_is_not_enabled_for_one_surface(home: Home) -> None:
    assert main(["tools", "disable", "web"]) == 0
    assert main(["tools", "enable", "web", "--for", "api"]) == 78
    assert load_config(home, {}).tools.disabled == ("web",)
