"""Every block of the documents is true: commands run, configurations load, and shown output appears."""

from __future__ import annotations

import argparse
import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from hermes.cli.habit import translated
from hermes.cli.main import _build_parser
from hermes.config.home import Home
from hermes.config.loader import problems_of
from hermes.config.settings import SECTIONS
from tests.docs.block import ROOT, Block, Mark, blocks, commands, documents, shows
from tests.docs.page_shell import PageShell

PAGES = {str(path.relative_to(ROOT)): list(blocks(path)) for path in documents()}
RUN = frozenset({"console", "python"})
SHOWN = frozenset({"text", "", "js", "ini", "dockerfile"})  # not commands
# Programs that a test must not start: they install things or talk to other hosts.
OUTSIDE = re.compile(
    r"\b(?:sudo|apt|podman|docker|systemctl|loginctl|pip|pipx|uv|npm|git push|make (?!run))\b|install\.sh"
)
INLINE = re.compile(r"`(hermes [^`]*)`")
TYPED = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?hermes [a-z-]")


def runs(block: Block) -> bool:
    return block.language in RUN and Mark.NOT_RUN not in block.marks


@pytest.mark.timeout(240)
@pytest.mark.parametrize("page", [page for page, found in PAGES.items() if any(map(runs, found))])
def test_blocks_of_the_page_run(page: str) -> None:
    with PageShell() as shell:
        for block in PAGES[page]:
            if Mark.FILE in block.marks:
                (shell.directory / block.marks[Mark.FILE]).parent.mkdir(parents=True, exist_ok=True)
                (shell.directory / block.marks[Mark.FILE]).write_text(block.text, encoding="utf-8")
            elif runs(block):
                if block.language == "console" or "8642" in block.text or "os.environ" in block.text:
                    shell.start_daemon()
                _run(block, shell)


def _run(block: Block, shell: PageShell) -> None:
    given = (shell.directory / block.marks[Mark.INPUT]).read_text("utf-8") if Mark.INPUT in block.marks else ""
    if block.language == "python":
        (shell.directory / "block.py").write_text(shell.substituted_text(block.text), encoding="utf-8")
        code, output = shell.run("python -W error block.py", given)
        assert code == 0, f"{block.place}\n{output}"
        return
    found = commands(block)
    for number, command in enumerate(found, start=1):
        code, output = shell.run(command.text, given)
        fails = Mark.FAILS in block.marks and number == len(found)
        assert (code != 0) == fails, f"{block.place}: {command.text}: exit code {code}\n{output}"
        if Mark.OUTPUT_VARIES not in block.marks:
            shown = tuple(line.replace(".venv/bin/", "") for line in command.output)  # it is in the PATH here
            assert shows(shown, output), f"{block.place}: {command.text}\nshows\n{shown}\nis\n{output}"


ALL = [block for found in PAGES.values() for block in found]


@pytest.mark.parametrize("block", ALL, ids=lambda block: block.place)
def test_block_is_of_a_known_kind(block: Block) -> None:
    assert block.language in RUN | SHOWN | {"yaml", "json", "toml"}, "use console, python, yaml, json or text"
    if block.language in {"text", ""}:
        command = r"^\$ " if block.page.startswith("docs/reference/") else r"^(\$|hermes) "
        assert not re.search(command, block.text, re.MULTILINE), "commands belong into a console block"
    if runs(block) and block.language == "console":
        assert not OUTSIDE.search(block.text), "mark it: <!-- not run: REASON -->"


@pytest.mark.parametrize("block", [b for b in ALL if b.language in {"yaml", "json", "toml"}], ids=lambda b: b.place)
def test_data_block_is_valid(block: Block) -> None:
    if block.language == "json":
        json.loads(block.text)
    elif block.language == "toml":
        tomllib.loads(block.text)
    else:
        value = yaml.safe_load(block.text)
        if Mark.NOT_RUN not in block.marks:
            assert set(value) <= set(SECTIONS), "not a configuration of Hermes? <!-- not run: REASON -->"
            home = Home.from_environ({"HERMES_HOME": "/nonexistent"})
            assert problems_of(block.text, home, {}) == ()


def _typed() -> Iterator[tuple[str, str]]:
    for block in ALL:
        for line in block.text.splitlines():
            if TYPED.match(line) and block.language in {"console", "text"}:
                yield block.place, line.removeprefix("$ ")
    for page in PAGES:
        for found in INLINE.finditer((ROOT / page).read_text(encoding="utf-8").replace("\n", " ")):
            yield page, found[1]


def test_named_commands_and_options_exist() -> None:
    parser = _build_parser("")
    found = [(place, line, _problem(parser, line)) for place, line in _typed()]
    assert [each for each in found if each[2]] == []
    assert len(found) > 200


@pytest.mark.parametrize(
    "line", ["hermes sesions", "hermes setup --modell x", "hermes keys make x", "hermes chat --nope"]
)
def test_a_wrong_command_or_option_is_found(line: str) -> None:
    assert _problem(_build_parser(""), line)


def _problem(parser: argparse.ArgumentParser, line: str) -> str:
    """Return what a command line names that does not exist. Placeholders and alternatives are skipped."""
    words = [word for word in re.split(r"[\s\[\]|\\]+", _first_command(line)) if word][1:]
    if words and not words[0].startswith("-") and re.fullmatch(r"[a-z-]+", words[0]):
        words = translated(words)
    for before, word in zip(["", *words], words, strict=False):
        children = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
        if word.startswith("--") and re.fullmatch(r"--[a-z-]+", option := word.partition("=")[0]):
            known = {option for action in parser._actions for option in action.option_strings}
            if option not in known and option != "--json":
                return f"no option {option}"
        elif children and re.fullmatch(r"[a-z][a-z-]*", word) and not before.startswith("-"):
            if word not in children[0].choices:
                return f"no command {word}"
            parser = children[0].choices[word]
    return ""


def _first_command(line: str) -> str:
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        return line
    ends = (number for number, word in enumerate(words) if word in {"|", "&&", ";", "<", ">"} or word.endswith(";"))
    return " ".join(words[: next(ends, len(words))])


def test_a_not_run_block_has_a_reason_and_most_blocks_run() -> None:
    able = [block for block in ALL if block.language in RUN]
    skipped = [block for block in able if Mark.NOT_RUN in block.marks]
    assert all(len(block.marks[Mark.NOT_RUN]) > 8 for block in skipped)
    assert len(skipped) <= len(able) / 4
    assert Path(ROOT / "Makefile").read_text(encoding="utf-8").count("@$(BIN)/hermes daemon\n") == 1  # `make run`
