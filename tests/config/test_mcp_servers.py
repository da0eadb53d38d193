from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hermes.config.editor import with_entry
from hermes.config.home import Home
from hermes.config.loader import check_text, load_config, problems_of
from hermes.config.mcp.mcp_servers import parse_server
from hermes.config.revision import revise, unset_setting
from hermes.config.settings import Config
from hermes.domain.access.role import Role
from hermes.domain.mcp.server_spec import McpAuth, McpTrust, TransportKind

TEXT = """
mcp_servers:
  files:
    command: npx
    args: [-y, server, 3]
    env: {A: 1, B: "${TOKEN}"}
    tools: {include: ["read_*"], prompts: false}
  web:
    url: https://example.com/mcp
    headers: {Authorization: "Bearer ${TOKEN}"}
    auth: oauth
    trust: read_only
    role: admin
    timeout: 5
    sampling: false
"""


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(data_dir=tmp_path, config_file=tmp_path / "config.yaml")


def test_servers_of_the_file_are_read(home: Home) -> None:
    files, web = check_text(TEXT, home, {}).mcp_servers
    assert (files.command, files.args, files.env) == ("npx", ("-y", "server", "3"), (("A", "1"), ("B", "${TOKEN}")))
    assert (files.include, files.prompts, files.resources) == (("read_*",), False, True)
    assert (files.transport, files.trust, files.timeout_s) == (TransportKind.STDIO, McpTrust.ASK, 300.0)
    assert (web.transport, web.auth, web.trust) == (TransportKind.HTTP, McpAuth.OAUTH, McpTrust.READ_ONLY)
    assert (web.role, web.timeout_s, web.sampling.enabled) == (Role.ADMIN, 5.0, False)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "needs either command"),
        ({"command": "a", "url": "http://x"}, "needs either command"),
        ({"command": "a", "transport": "sse"}, "stdio needs command"),
        ({"url": "ftp://x"}, "must be an address"),
        ({"url": "https://me:pw@x"}, "must be an address"),
        ({"command": "a", "comand": "b"}, "did you mean command"),
        ({"command": "a", "args": "b"}, "expected a list"),
        ({"command": "a", "env": {"A B": "c"}}, "is not a valid name"),
        ({"command": "a", "env": {"A": "c\nd"}}, "line breaks"),
        ({"command": "a", "timeout": 0}, "expected a number"),
        ({"command": "a", "trust": "always"}, "must be one of ask, read_only, full"),
        ({"command": "a", "sampling": {"max_rpm": 0}}, "expected a number"),
        ({"url": "https://x", "oauth": {"client_secret_env": "s3cret value"}}, "must be the name"),
        ("npx server", "expected a command or a url"),
    ],
)
def test_mistakes_are_reported_without_values(given: Any, problem: str) -> None:
    spec, problems = parse_server("x", given)
    assert spec is None
    assert problem in "; ".join(problems)
    assert "pw" not in "; ".join(problems)


@pytest.mark.parametrize("name", ["", "a b", "a__b", "ä", "x" * 40, "-a", "a.b"])
def test_name_fits_into_a_tool_name(name: str) -> None:
    assert parse_server(name, {"command": "x"})[1]


def test_problem_has_its_place(home: Home) -> None:
    [problem] = problems_of("mcp_servers:\n  bad:\n    command: 1\n    url: x\n", home, {})
    assert problem.startswith(f"{home.config_file}:2:3: mcp_servers.bad")


def test_changed_servers_take_effect_at_a_reload(home: Home) -> None:
    new = check_text(TEXT, home, {})
    assert Config.reloadable_changes(Config(), new) == (("mcp_servers",), ())
    assert new.value("mcp_servers") == ("files", "web")


def test_entry_is_added_and_removed_in_the_text(home: Home) -> None:
    home.config_file.write_text("# mine\nlog:\n  level: INFO\n", encoding="utf-8")
    for name in ("one", "two"):
        revise(home, {}, partial(with_entry, section="mcp_servers", key=name, value={"command": "x", "args": ["-a"]}))
    assert [each.name for each in load_config(home, {}).mcp_servers] == ["two", "one"]
    unset_setting(home, "mcp_servers.two", {})
    assert [each.name for each in load_config(home, {}).mcp_servers] == ["one"]
    assert home.config_file.read_text(encoding="utf-8").startswith("# mine\nlog:\n")
