"""Suggestions for unknown commands."""

from __future__ import annotations

import re

import pytest

from hermes.cli.main import main
from hermes.cli.suggestion import HARMFUL, MEANINGS, answer_to
from tests.cli.test_main import COMMANDS

LEFT_OVER = [  # what the commands of other programs led to
    "attach", "ask", "cost", "delet", "dele", "ki", "list", "model", "rm", "sto", "skill", "skills", "top", "update",
    "upgrade", "version", "whatsapp", "en", "kil", "stp",
]  # fmt: skip


@pytest.mark.parametrize("word", LEFT_OVER)
def test_no_guess_ends_or_destroys_something(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert word not in COMMANDS
    assert main([word]) == 2
    line = capsys.readouterr().err
    guessed = set(re.findall(r"hermes ([a-z-]+)", line)) | set(re.findall(r"did you mean (\S+)\?", line))
    assert not guessed & HARMFUL, line


@pytest.mark.parametrize(
    ("argv", "answer"),
    [
        (["gateway", "start"], "`hermes daemon` runs"),
        (["model"], "/model"),
        (["update"], "then `hermes restart`"),
        (["diagnose"], "`hermes doctor`"),
        (["journal"], "`hermes logs`"),
        (["toolsets"], "`hermes tools`"),
        (["cron"], "does not have this"),
        (["skills"], "does not have this"),
        (["top"], "`hermes status`"),
        (["config", "list"], "`hermes config show`"),
        (["settings"], "`hermes config set KEY VALUE`"),
        (["sessions", "list"], "`hermes sessions` lists"),
        (["sessions", "export", "x"], "`hermes export SESSION`"),
        (["-z", "hi"], "`hermes chat -z QUESTION`"),
        (["-r", "x"], "`hermes chat -r SESSION`"),
        (["help"], "`hermes --help`"),
        (["-V"], "`hermes --version`"),
        (["sesions"], "did you mean sessions?"),
        (["statsu"], "did you mean status?"),
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
    assert "prints every setting" in answer_to("list", "config", ["check", "show", "path"])
    assert answer_to("chek", "config", ["check", "show", "path"]) == "did you mean check?"
    assert answer_to("frobnicate", "", COMMANDS) == ""
