"""Entry point: help, version, completion, exit codes, and a terminal that goes away."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

import hermes as package
from bench.startup import shortest
from hermes.cli.main import _GROUPS, main
from hermes.config.home import Home, lock, prepare
from tests.cli.conftest import Hermes, command
from tests.cli.fake_admin import NOBODY, Answer, FakeAdmin, listing
from tests.cli.test_inspect import ACTOR, session

COMMANDS = [
    "daemon", "status", "doctor", "chat", "ps", "top", "sessions", "show", "why", "context", "search", "tail",
    "trace", "approve", "deny", "answer", "grants", "keys", "cron", "log", "kill", "stop", "restart", "end",
    "suspend", "resume", "compress", "delete", "reload", "dashboard", "logs", "outbox", "dead-letters", "send",
    "webhooks", "hooks", "channels", "plugins", "pairing", "setup", "export", "import", "backup", "restore",
    "service", "storage", "slack", "config", "tools", "model", "trust", "skills", "memory", "profile",
    "mcp", "completion",
]  # fmt: skip


@pytest.mark.parametrize("argv", [[], ["--help"]])
def test_help_names_every_command(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 0
    text = capsys.readouterr().out
    assert re.findall(r"^    ([a-z-]+)\s", text, re.MULTILINE) == COMMANDS
    assert "examples:" in text
    assert "stdout stays empty then, also with --json" in " ".join(text.split())


def test_the_table_names_the_module_of_every_command() -> None:
    table = [name for names in _GROUPS.values() for name in names]
    assert table == [name for name in COMMANDS if name not in ("slack", "completion")]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert f"usage: hermes {name}" in text
    assert "examples:\n  " in text
    assert f"hermes {name}" in text.partition("examples:")[2]


@pytest.mark.parametrize(
    ("name", "said"), [("ps", "--sessions"), ("suspend", "the next message starts a new session")]
)
def test_help_mentions_important_options(name: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name, "--help"]) == 0
    assert said in " ".join(capsys.readouterr().out.partition("examples:")[0].split())


@pytest.mark.parametrize(
    "argv", [["ps"], ["show", "x"], ["chat", "-r", "x", "-z", "?"], ["end", "x"], ["storage", "stats"]]
)
def test_an_error_leaves_nothing_on_stdout_for_scripts(admin: FakeAdmin, hermes: Hermes, argv: list[str]) -> None:
    done = hermes(*argv, "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(("hermes: There is nothing at /", "hermes: there is no session"))


def test_the_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"hermes {package.__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_the_commands(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(name in script for name in COMMANDS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_offers_sessions(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "hermes __complete sessions" in capsys.readouterr().out


def test_the_sessions_that_are_offered_are_those_there_are(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes["GET /api/sessions"] = listing(session("s1"), session("s2"))
    assert hermes("__complete", "sessions").stdout == "s1\ns2\n"
    admin.close()
    done = hermes("__complete", "sessions")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("argv", "problem"),
    [
        (["pss"], "there is no command 'pss'; did you mean ps?"),
        (["frobnicate"], "there is no command 'frobnicate' (see `hermes"),
        (["stop", "--timeout", "x"], "expected a number of seconds, found 'x'"),
        (["chat", "--timeout", "5"], "--timeout needs -z"),
        (["ps", "--nope"], "unrecognized arguments: --nope"),
        (["show"], "the following arguments are required: SESSION; - is the last active one (see"),
        (["storage"], "name a command: verify, stats, backup, compact"),
        (["show", "s", "--tail", "-3"], "expected a whole number of at least 0, found '-3'"),
        (["ps", "--limit", "x"], "expected a whole number of at least 1, found 'x'"),
        (["ps", "--sessions", "--limit", "0"], "expected a whole number of at least 1, found '0'"),
        (["chat", "--model", "x"], "--model x; `/model NAME` in the chat"),
        (
            ["chat", "hello"],
            "arguments: hello; `hermes chat -z QUESTION` asks one question (see `hermes chat --help`)",
        ),
        (["storage", "verify", "it"], "unrecognized arguments: it (see `hermes storage verify --help`)"),
        (["--nope"], "unrecognized arguments: --nope (see `hermes --help`)"),
        (["chat", "-r", ""], "the session id is empty; `hermes sessions` lists ids"),
        (["chat", "--json"], "--json needs -z"),
        (["daemon", "--log-level", "LOUD"], "invalid choice: 'LOUD'"),
    ],
)
def test_usage_error_is_one_line(
    home: Home, argv: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    line, *rest = capsys.readouterr().err.splitlines()
    assert not rest
    assert line.startswith("hermes: ")
    assert problem in line
    assert "--help`)" in line


def test_a_bad_configuration_stops_the_daemon_before_it_starts(home: Home, hermes: Hermes) -> None:
    done = hermes("daemon", HERMES_API_PORT="many")
    assert (done.returncode, done.stdout) == (78, "")
    assert done.stderr == "hermes: environment variable HERMES_API_PORT: expected a whole number, found 'many'\n"
    assert list(home.data_dir.iterdir()) == []


def test_closed_pipe_is_not_an_error(admin: FakeAdmin) -> None:
    admin.routes["GET /actors"] = Answer(body={"actors": [ACTOR] * 5000})
    with subprocess.Popen(command("ps", "--actors"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ps:
        assert ps.stdout is not None
        assert ps.stderr is not None
        ps.stdout.readline()
        ps.stdout.close()
        assert ps.stderr.read() == b""
        assert ps.wait(30) == 141


def test_output_that_cannot_be_written_is_one_plain_line(admin: FakeAdmin) -> None:
    admin.routes["GET /actors"] = Answer(body={"actors": [ACTOR]})
    with open("/dev/full", "w") as full:  # noqa: PTH123
        done = subprocess.run(command("ps", "--actors"), stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "hermes: [Errno 28] No space left on device\n"


def test_ctrl_c_gives_its_exit_code_also_while_a_dataclass_is_made(tmp_path: Path) -> None:
    program = tmp_path / "interrupted.py"
    program.write_text("""
import sys
from hermes.cli import main

main._build_parser = lambda _: exec("raise KeyboardInterrupt")  # as a signal can in any `exec` of a text
sys.exit(main.main([]))
""")
    done = subprocess.run([sys.executable, "-m", program.stem], cwd=tmp_path, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


@pytest.mark.parametrize("term", ["dumb", "xterm"])
def test_hermes_alone_on_a_terminal_is_a_conversation(term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from hermes.cli import main as entry

    asked: list[str] = []

    def interrupted(argument: str) -> NoReturn:
        asked.append(argument)
        raise KeyboardInterrupt

    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(entry, "_build_parser", interrupted)
    for stream in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True)
    assert main([]) == 130
    assert asked == ["chat"]


def test_ctrl_c_ends_the_line_of_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from hermes.cli import main as entry

    def interrupted(_: str) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "_build_parser", interrupted)
    assert (main(["ps"]), capsys.readouterr().err) == (130, "")
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    assert (main(["ps"]), capsys.readouterr().err) == (130, "\n")


def test_text_that_the_terminal_cannot_show_is_escaped(admin: FakeAdmin, hermes: Hermes) -> None:
    admin.routes["GET /sessions/x"] = Answer(body={"session": {"id": "x"}, "why": "caf\u00e9 \ud83d\ude00"})
    done = hermes("why", "x", PYTHONIOENCODING="ascii")
    assert (done.returncode, done.stdout) == (0, "caf\\xe9 \\U0001f600\n")


# ---------------------------------------------------------------- storage


def test_storage_commands_go_through_a_running_daemon(
    home: Home, admin: FakeAdmin, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.routes |= {
        "GET /store": Answer(body={"engine": "lmdb", "sessions": 3, "size_bytes": 5 << 20, "last_commit_s": 0.002}),
        "GET /store/verify": Answer(body={"problems": ["session s1: record 4 is damaged"]}),
        "POST /store/backup": Answer(body={"path": "/x"}),
    }
    assert main(["storage", "stats"]) == 0
    assert [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()] == [
        ["engine:", "lmdb"],
        ["sessions:", "3"],
        ["size:", "5.0 MiB"],
        ["last", "commit:   2ms"],
    ]
    assert main(["storage", "verify"]) == 1
    assert capsys.readouterr().out == "session s1: record 4 is damaged\n"
    monkeypatch.chdir(home.data_dir)
    assert main(["storage", "backup", "copy", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"path": str(home.data_dir / "copy")}
    assert admin.asked[-1].body == {"path": str(home.data_dir / "copy")}
    assert main(["storage", "compact"]) == 75
    assert capsys.readouterr().err.startswith(
        f"hermes: the daemon (pid {NOBODY}) uses the store; `hermes stop` it first"
    )


@pytest.mark.parametrize("action", [["verify"], ["stats"], ["backup", "x"], ["compact"]])
def test_storage_commands_make_no_store(home: Home, action: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["storage", *action]) == 78
    assert capsys.readouterr().err == f"hermes: nothing is stored in {home.data_dir} yet\n"
    assert list(home.data_dir.iterdir()) == []


def test_storage_commands_keep_off_a_home_that_is_in_use(home: Home, capsys: pytest.CaptureFixture[str]) -> None:
    prepare(home)
    (home.store_dir / "data.mdb").write_bytes(b"")
    with lock(home):
        assert main(["storage", "verify"]) == 75
    assert "another Hermes runs on" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [[], ["stop"], ["restart"], ["ps"], ["reload"]])
def test_help_fits_a_terminal_of_80_columns(
    argv: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*argv, "--help"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


# ---------------------------------------------------------------- start-up time


def test_commands_start_fast(home: Home, admin: FakeAdmin) -> None:
    """The budgets of `make bench` are 4 and 10. On a loaded machine the ratio varies, so the test allows more."""
    admin.routes["GET /running"] = Answer(body={"sessions": [], "processes": []})
    python = (sys.executable, "-c", "pass")
    commands = [python, tuple(command("--version")), tuple(command("ps"))]
    python_s, version_s, ps_s = shortest(commands, {**os.environ}, runs=10)
    assert version_s < 7 * python_s
    assert ps_s < 17 * python_s
