"""Sections whose settings are mappings: hooks, webhooks and quick commands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.config.events.hook_entry import read_hook_folders
from hermes.config.events.route_entry import secret_of
from hermes.config.home import Home
from hermes.config.loader import load_config
from hermes.config.settings import Config
from hermes.domain.access.role import Role
from hermes.domain.errors import ConfigError
from hermes.domain.event.quick_command import QuickKind
from hermes.domain.event.webhook import Signing


def load(folder: Path, text: str) -> Config:
    (folder / "config.yaml").write_text(text)
    return load_config(Home.from_environ({"HERMES_HOME": str(folder)}), {})


def test_hooks_are_written_by_event(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        "hooks:\n  at_once: 2\n  pre_tool_call:\n    - {matcher: terminal, command: check, timeout: 5}\n"
        "    - {command: log}\n  'session:reset': {url: 'http://127.0.0.1:9/x'}\n",
    )
    first, second, third = config.hooks.parsed()
    assert (first.on, first.matcher, first.command, first.timeout_s) == (("pre_tool_call",), "terminal", "check", 5)
    assert (second.matcher, second.command, second.timeout_s) == ("", "log", 10)
    assert (third.on, third.url) == (("session:reset",), "http://127.0.0.1:9/x")
    assert config.hooks.at_once == 2


def test_hooks_are_also_a_list(tmp_path: Path) -> None:
    config = load(tmp_path, "hooks:\n  events: [{on: ['agent:end', 'command:*'], command: tell}]\n")
    assert config.hooks.parsed()[0].on == ("agent:end", "command:*")


def test_webhooks_are_written_by_name(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        "webhooks:\n  routes:\n    triage:\n      prompt: 'Look: {issue.title}'\n      secret_env: GH\n"
        "      deliver: ['slack:#ops', home]\n      role: user\n      toolset: [web, todo]\n      per_minute: 5\n",
    )
    (route,) = config.webhooks.parsed()
    assert (route.name, route.signing, route.role) == ("triage", Signing.GITHUB, Role.USER)
    assert (route.deliver, route.toolset, route.per_minute) == (("slack:#ops", "home"), ("web", "todo"), 5)
    assert secret_of(route, {"GH": "s"}, tmp_path) == b"s"
    with pytest.raises(ConfigError, match="GH"):
        secret_of(route, {}, tmp_path)


def test_quick_commands_stand_directly_in_their_section(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        "quick_commands:\n  disk: {type: exec, command: df -h}\n  n: {type: alias, target: /new}\n"
        "  brief: {type: prompt, prompt: 'Short: {argument}', role: guest}\n",
    )
    disk, alias, brief = config.quick_commands.parsed()
    assert (disk.name, disk.kind, disk.text, disk.needs) == ("disk", QuickKind.EXEC, "df -h", Role.OWNER)
    assert (alias.kind, alias.needs) == (QuickKind.ALIAS, Role.USER)
    assert (brief.kind, brief.needs) == (QuickKind.PROMPT, Role.GUEST)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("hooks: {pre_tol_call: [{command: x}]}", "unknown event 'pre_tol_call'"),
        ("hooks: {'agent:end': [{comand: x}]}", "unknown key 'comand'; did you mean command?"),
        ("hooks: {'agent:end': [{}]}", "needs either a command or a url"),
        ("hooks: {'agent:end': [{url: 'ftp://x'}]}", "url must be an address"),
        ("hooks: {pre_tool_call: [{command: x, matcher: '('}]}", "pre_tool_call"),
        ("hooks: {'agent:end': x}", "expected keys below it"),
        ("webhooks: {routes: {a: {prompt: p}}}", "needs either secret_env or secret_file"),
        ("webhooks: {routes: {a: {prompt: p, secret_env: 'a b'}}}", "name of an environment variable"),
        ("webhooks: {routes: {a: {secret_env: S}}}", "prompt is missing"),
        ("webhooks: {routes: {A!: {prompt: p, secret_env: S}}}", "the name must have"),
        ("webhooks: {routes: {a: {prompt: p, secret_env: S, role: king}}}", "role must be one of"),
        ("webhooks: {routes: {a: {prompt: p, secret_env: S, toolset: [wb]}}}", "did you mean web?"),
        ("webhooks: {routes: {a: {prompt: p, secret_env: S, deliver: ['x y']}}}", "is not a delivery target"),
        ("quick_commands: {a: {type: exec}}", "command is missing"),
        ("quick_commands: {a: {type: run, command: x}}", "type must be one of"),
        ("quick_commands: {'a b': {command: x}}", "must be one word"),
    ],
)
def test_mistake_is_reported_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as found:
        load(tmp_path, text)
    assert problem in str(found.value)
    assert "config.yaml:1:" in str(found.value)


def test_hook_folder_is_read_and_a_writable_one_is_not(tmp_path: Path) -> None:
    for name, manifest in (
        ("good", "{events: ['gateway:startup']}"),
        ("open", "{events: ['agent:end'], command: x}"),
    ):
        (tmp_path / name).mkdir(mode=0o755)
        (tmp_path / name / "HOOK.yaml").write_text(manifest)
    (tmp_path / "good" / "handler.py").write_text("def handle(event, context): ...\n")
    (tmp_path / "open" / "HOOK.yaml").chmod(0o666)
    (tmp_path / "empty").mkdir()
    hooks, problems = read_hook_folders(tmp_path)
    assert [(hook.name, hook.on) for hook in hooks] == [("good", ("daemon:start",))]
    assert hooks[0].argv[-1] == os.fspath(tmp_path / "good" / "handler.py")
    assert [problem.partition(" is not used")[0] for problem in problems] == ["hooks/empty", "hooks/open"]


def test_home_without_hooks_has_none(tmp_path: Path) -> None:
    assert read_hook_folders(tmp_path / "hooks") == ([], [])
