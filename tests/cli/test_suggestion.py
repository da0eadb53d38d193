"""Suggestions for unknown commands."""

from __future__ import annotations

import re

import pytest

from hermes.cli.habit import translated
from hermes.cli.main import main
from hermes.cli.suggestion import HARMFUL, MEANINGS, answer_to
from tests.cli.test_main import COMMANDS

LEFT_OVER = [  # what the commands of other programs led to
    "attach", "ask", "cost", "delet", "dele", "ki", "list", "models", "rm", "sto", "skill", "monitor",
    "update", "upgrade", "whatsapp", "en", "kil", "stp",
]  # fmt: skip


@pytest.mark.parametrize("word", [each for each in LEFT_OVER if each not in COMMANDS])
def test_no_guess_ends_or_destroys_something(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word]) == 2
    line = capsys.readouterr().err
    guessed = set(re.findall(r"hermes ([a-z-]+)", line)) | set(re.findall(r"did you mean (\S+)\?", line))
    assert not guessed & HARMFUL, line


@pytest.mark.parametrize(
    ("argv", "answer"),
    [
        (["models"], "`hermes model`"),
        (["update"], "then `hermes restart`"),
        (["serve"], "`hermes daemon` runs"),
        (["attach"], "`hermes chat -r SESSION`"),
        (["describe", "x"], "`hermes show ID`"),
        (["diagnose"], "`hermes doctor`"),
        (["journal"], "`hermes logs`"),
        (["toolsets"], "`hermes tools`"),
        (["skill"], "`hermes skills`"),
        (["web"], "`hermes dashboard --open`"),
        (["kanban"], "does not have this"),
        (["monitor"], "`hermes top`"),
        (["settings"], "`hermes config set KEY VALUE`"),
        (["sesions"], "did you mean sessions?"),
        (["statsu"], "did you mean status?"),
        (["moniter"], "`hermes top`"),
        (["gatway"], "`hermes daemon` runs"),
        (["sessions", "find"], "`hermes sessions search TEXT`"),
    ],
)
def test_an_unknown_command_gets_one_line_that_helps(
    argv: list[str], answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if argv[0] in COMMANDS and argv[0] not in ("config", "sessions"):
        pytest.skip("it exists now")
    assert main(argv) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert answer in line


def test_every_command_that_an_answer_names_exists() -> None:
    named = {name for answer in MEANINGS.values() for name in re.findall(r"`hermes ([a-z-]+)", answer)}
    assert named - {"--help", "--version"} <= set(COMMANDS)


def test_unknown_subcommand_is_suggested_from_its_parent() -> None:
    assert answer_to("chek", "config", ["check", "show", "path"]) == "did you mean check?"
    assert answer_to("frobnicate", "", COMMANDS) == ""


@pytest.mark.parametrize(
    ("typed", "ours"),
    [
        ("gateway", "daemon"),
        ("gateway run", "daemon"),
        ("gateway start --system", "service start --system"),
        ("gateway frobnicate", "daemon frobnicate"),
        ("gateway status", "status"),
        ("chat -q hi", "chat -z hi"),
        ("tui", "chat"),
        ("help", "--help"),
        ("help sessions", "sessions --help"),
        ("version", "--version"),
        ("-z hi", "chat -z hi"),
        ("-c", "chat -r"),
        ("config list --json", "config show --json"),
        ("chat -z hi", "chat -z hi"),
        ("", ""),
    ],
)
def test_command_lines_of_similar_programs_work(typed: str, ours: str) -> None:
    assert translated(typed.split()) == ours.split()


def test_version_and_help_work_as_words(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == 0
    assert capsys.readouterr().out.startswith("hermes ")
    assert main(["help", "ps"]) == 0
    assert capsys.readouterr().out.startswith("usage: hermes ps")
