"""`hermes config`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from hermes.cli.main import main
from hermes.config.home import Home, lock
from hermes.config.loader import load_config
from tests.cli.conftest import Hermes

SHELL = "checked with the environment variables of this shell"


def test_path_is_where_the_file_is_or_would_be(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "path"]) == 0
    assert capsys.readouterr().out == f"{home.config_file}\n"


def test_check_of_a_valid_configuration(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "check"]) == 0
    assert "there is no file" in capsys.readouterr().out
    home.config_file.write_text("api: {port: 1}\n")
    assert main(["config", "check"]) == 0
    assert capsys.readouterr().out == f"{home.config_file}: valid\n{SHELL}\n"
    assert main(["config", "check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "ok": True,
        "path": str(home.config_file),
        "exists": True,
        "environment": [],
        "warnings": [],
        "daemon_pid": None,
    }


@pytest.mark.parametrize("content", ["", " \n\n"])
def test_check_warns_of_an_empty_file(home: Home, capsys: pytest.CaptureFixture[str], content: str) -> None:
    home.config_file.write_text(content)
    assert main(["config", "check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == ["config.yaml is empty; using defaults"]
    home.config_file.write_text("# nothing is set on purpose\n")
    assert main(["config", "check", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["warnings"] == []


def test_check_names_what_the_environment_sets(home: Home, hermes: Hermes) -> None:
    done = hermes("config", "check", HERMES_LOG_LEVEL="error", HERMES_API_PORT="0")
    assert done.stdout.splitlines() == [
        f"{home.config_file}: valid (there is no file, so all other settings have their defaults)",
        "set by the environment: HERMES_API_PORT, HERMES_LOG_LEVEL",
        SHELL,
    ]


def test_check_warns_of_probable_mistakes(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)  # as if it were not installed
    home.config_file.write_text("model: {provider: local, base_url: 'http://localhost:1/v1/chat/completions/'}\n")
    assert main(["config", "check"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{home.config_file}: valid",
        "warning: model.provider is local, but the local model is not installed: run `make local`",
        "warning: model.base_url ends in /chat/completions, which is appended automatically: use http://localhost:1/v1",
        SHELL,
    ]


def test_check_prints_every_problem_and_exits_with_78(home: Home, hermes: Hermes) -> None:
    home.config_file.write_text("api:\n  prot: 1\nlog: {level: LOUD}\n")
    done = hermes("config", "check")
    assert done.returncode == 78
    assert done.stdout == ""
    assert done.stderr.splitlines() == [
        "hermes: the configuration has 2 problems:",
        f"  {home.config_file}:2:3: unknown setting 'api.prot'; did you mean api.port?",
        f"  {home.config_file}:3:14: log.level: must be one of DEBUG, INFO, WARNING, ERROR, not 'LOUD'",
    ]


def test_check_json_lists_every_problem_with_its_line(home: Home, hermes: Hermes) -> None:
    home.config_file.write_text("api:\n  prot: 1\nlog: {level: LOUD}\n")
    done = hermes("config", "check", "--json", HERMES_API_PORT="many")
    assert (done.returncode, done.stderr) == (78, "")
    found = json.loads(done.stdout)
    assert found["ok"] is False
    assert [(each["path"], each["line"], each["column"]) for each in found["problems"]] == [
        (str(home.config_file), 2, 3),
        (str(home.config_file), 3, 14),
        (None, None, None),
    ]
    assert found["problems"][0]["problem"] == "unknown setting 'api.prot'; did you mean api.port?"
    assert found["problems"][2]["problem"].startswith("environment variable HERMES_API_PORT: expected a whole number")


def test_check_json_lists_a_single_problem(home: Home, hermes: Hermes) -> None:
    home.config_file.write_text("api:\n  port: many\n")
    (problem,) = json.loads(hermes("config", "check", "--json").stdout)["problems"]
    assert (problem["line"], problem["problem"]) == (2, "api.port: expected a whole number, found 'many'")


def test_check_misses_the_models_key(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    home.config_file.write_text("model: {provider: openai, name: x}\n")
    assert main(["config", "check"]) == 78
    note, problem = capsys.readouterr().err.splitlines()
    assert note == f"hermes: {SHELL}"
    assert "the environment variable OPENAI_API_KEY (model.api_key_env) is not set" in problem
    with lock(home):  # as a daemon does
        assert main(["config", "check"]) == 78
    note, _ = capsys.readouterr().err.splitlines()
    assert note.startswith(f"hermes: {SHELL}; the running daemon (pid {os.getpid()}) has its own: `hermes reload`")


def test_show_prints_the_source_of_each_setting(home: Home, hermes: Hermes) -> None:
    home.config_file.write_text("api:\n  port: 9000\n")
    done = hermes("config", "show", HERMES_LOG_LEVEL="error", OPENAI_API_KEY="sk-canary12345")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert f"  port: 9000  # {home.config_file}:2:3" in lines
    assert '  level: "ERROR"  # environment variable HERMES_LOG_LEVEL' in lines
    assert '  host: "127.0.0.1"  # default' in lines
    assert "canary" not in done.stdout
    shown = json.loads(hermes("config", "show", "--json").stdout)
    assert shown["api"]["port"] == 9000
    assert shown["sources"] == {"api.port": f"{home.config_file}:2:3"}


def test_output_of_show_is_a_valid_configuration(home: Home, hermes: Hermes) -> None:
    home.config_file.write_text(hermes("config", "show").stdout)
    assert hermes("config", "check").returncode == 0


def test_config_check_accepts_keys_of_the_service_with_a_warning(home: Home, hermes: Hermes) -> None:
    home.config_file.write_text("telegram:\n  enabled: true\n")
    (home.data_dir / "service.env").write_text("TELEGRAM_BOT_TOKEN=123456:abc\n")
    done = hermes("config", "check", TELEGRAM_BOT_TOKEN="")
    assert done.returncode == 0
    good, warning, _ = done.stdout.splitlines()
    assert good == f"{home.config_file}: valid"
    assert warning.startswith("warning: valid for the service only, not for this shell: ")
    assert "the Telegram bot's token is missing" in warning


def test_check_warns_of_a_fallback_without_its_key(home: Home, hermes: Hermes) -> None:
    home.config_file.write_text("model: {fallbacks: ['m@http://localhost:1/v1#ANOTHER_KEY']}\n")
    assert "names the variable ANOTHER_KEY, which is not set" in hermes("config", "check").stdout


def test_check_warns_of_a_working_directory_that_is_not_there(home: Home, hermes: Hermes) -> None:
    home.config_file.write_text("terminal: {cwd: nowhere}\n")
    warning = (
        f"warning: terminal.cwd is {home.data_dir}/nowhere, which is not a directory: commands cannot start there"
    )
    assert warning in hermes("config", "check").stdout.splitlines()


def test_set_get_and_unset(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.config_file.write_text("# mine\napi:\n  port: 1  # the first\n")
    assert main(["config", "set", "api.port", "2"]) == 0
    assert home.config_file.read_text() == "# mine\napi:\n  port: 2  # the first\n"
    capsys.readouterr()
    assert main(["config", "get", "api.port"]) == 0
    assert capsys.readouterr().out == "2\n"
    assert main(["config", "get", "api.port", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "key": "api.port",
        "value": 2,
        "default": 8642,
        "source": f"{home.config_file}:3:3",
        "live": False,
    }
    assert main(["config", "unset", "api.port", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "key": "api.port",
        "value": 8642,
        "changed": True,
        "path": str(home.config_file),
        "problems": [],
        "overridden_by": None,
        "apply_with": None,
    }
    assert home.config_file.read_text() == "# mine\napi:\n"


def test_get_of_a_section(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["config", "get", "turns"]) == 0
    assert capsys.readouterr().out == "turns.max_concurrent=1024\n"


def test_set_says_what_overrides_it_and_what_applies_it(
    home: Home, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERMES_LOG_LEVEL", "ERROR")
    with lock(home):  # as a daemon does
        assert main(["config", "set", "log.level", "debug", "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["overridden_by"], found["apply_with"]) == ("HERMES_LOG_LEVEL", "hermes reload")
        assert main(["config", "set", "api.port", "3"]) == 0
    assert "`hermes restart` applies" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["set", "api.prot", "1"], "did you mean api.port?"),
        (["set", "api.port", "many"], "expected a whole number"),
        (["get", "api.prot"], "did you mean api.port?"),
        (["unset", "api.prot"], "did you mean api.port?"),
        (["unset", "port"], "did you mean api.port"),
        (["set", "model.provider", "openai"], "model.name must be set"),
    ],
)
def test_refused_changes_leave_no_file(
    home: Home, capsys: pytest.CaptureFixture[str], argv: list[str], said: str
) -> None:
    assert main(["config", *argv]) == 78
    assert said in capsys.readouterr().err
    assert not home.config_file.exists()


def test_unset_removes_a_mistyped_setting(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.config_file.write_text("api:\n  prot: 1\n  port: 2\n")
    assert main(["config", "unset", "api.prot"]) == 0
    assert home.config_file.read_text() == "api:\n  port: 2\n"


def _editor(tmp_path: Path, *lines: str) -> str:
    script = tmp_path / "editor.sh"
    script.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
    script.chmod(0o700)
    return str(script)


def test_edit_saves_a_valid_text(home: Home, hermes: Hermes, tmp_path: Path) -> None:
    done = hermes("config", "edit", EDITOR=_editor(tmp_path, 'echo "api: {port: 3}" >> "$1"'), VISUAL="")
    assert (done.returncode, done.stdout) == (0, "The configuration is valid and saved.\n")
    assert home.config_file.read_text().endswith("api: {port: 3}\n")


def test_edit_keeps_the_file_and_the_draft_of_an_invalid_text(home: Home, hermes: Hermes, tmp_path: Path) -> None:
    home.config_file.write_text("api: {port: 1}\n")
    done = hermes("config", "edit", EDITOR=_editor(tmp_path, 'echo "api: {prot: 3}" > "$1"'), VISUAL="")
    assert done.returncode == 78
    assert "did you mean api.port?" in done.stderr
    assert home.config_file.read_text() == "api: {port: 1}\n"
    done = hermes("config", "edit", EDITOR=_editor(tmp_path, 'sed -i s/prot/port/ "$1"'), VISUAL="")
    assert done.returncode == 0
    assert home.config_file.read_text() == "api: {port: 3}\n"


@pytest.mark.parametrize(("editor", "said"), [("false", "exit code 1"), ("/no/such/editor", "cannot be started")])
def test_edit_with_a_failing_editor_changes_nothing(home: Home, hermes: Hermes, editor: str, said: str) -> None:
    done = hermes("config", "edit", EDITOR=editor, VISUAL="")
    assert (done.returncode, home.config_file.exists()) == (78, False)
    assert said in done.stderr


def test_a_list_in_brackets_is_a_list(home: Home) -> None:
    assert main(["config", "set", "model.fallbacks", "[offline, 'a:b']"]) == 0
    assert load_config(home, {}).model.fallbacks == ("offline", "a:b")
    for text in ("[offline", "[[a]]"):
        assert main(["config", "set", "model.fallbacks", text]) == 78
    home.config_file.write_text('model: {fallbacks: ["[offline]"]}\n')
    assert main(["config", "check"]) == 78


def test_mistakes_are_repaired_one_by_one(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    home.config_file.write_text("api:\n  prot: 1\nlog:\n  level: LOUD\nport: 3\n")
    assert main(["config", "set", "log.level", "debug", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["problems"]) == 2
    assert main(["config", "set", "model.provider", "openai"]) == 78  # a new mistake
    assert main(["config", "unset", "api.prot"]) == 0
    assert "unknown section 'port'" in capsys.readouterr().out
    assert main(["config", "unset", "port", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []
    assert load_config(home, {}).log.level == "DEBUG"


def test_edit_without_a_terminal_is_refused_and_leaves_no_draft(home: Home, hermes: Hermes) -> None:
    done = hermes("config", "edit", EDITOR="vi -n", VISUAL="")
    assert (done.returncode, "needs a terminal; use `hermes config set`" in done.stderr) == (2, True)
    assert list(home.data_dir.glob("*.draft")) == []


def test_wrong_choices_get_a_suggestion(capsys: pytest.CaptureFixture[str], home: Home) -> None:
    assert main(["config", "set", "model.provider", "opnai"]) == 78
    assert "did you mean openai?" in capsys.readouterr().err
