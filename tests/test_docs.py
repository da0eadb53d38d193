"""The documents match the code: every command, route and setting is described, and every file they name exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hermes.adapters.openai_api.openapi.document import document
from hermes.config.settings import SETTINGS
from hermes.services.commands.registry import COMMANDS as SLASH_COMMANDS
from tests.docs import diagrams, reference

ROOT = Path(__file__).parent.parent
COMMANDS = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
API = (ROOT / "docs/api.md").read_text(encoding="utf-8")
DOCUMENTS = sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("bench/*.md")))
OF_THE_TREE = [
    each for each in DOCUMENTS if each.parent != ROOT or each.name in {"ARCHITECTURE.md", "CONTRIBUTING.md"}
]
NOT_IN_THE_TREE = {
    "hermes/tools/dice.py",
    "bench/results.json",
    "handler.py",
}  # an example of CONTRIBUTING.md; made by `make bench`; a file of a hook

NOT_SETTINGS = {"api.key", "web.timeout_s"}  # a file; an example of CONTRIBUTING.md
# A path in backticks that starts with a top directory of the project, or names a Python file.
_PATH = re.compile(r"`((?:hermes|tests|bench|docs|config|requirements|\.ci)/[\w./*-]*|[\w./-]+\.py)`")
_PACKAGE = re.compile(r"^  (?:\| )?((?:\w+/(?: \| )?)+)", re.MULTILINE)


def _name(document_: Path) -> str:
    return str(document_.relative_to(ROOT))


def test_every_command_has_its_line() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "hermes.cli.main", "--help"], capture_output=True, text=True, check=True, timeout=30
    ).stdout
    listed = re.search(r"\{([a-z,-]+)\}", shown)
    commands = listed[1].split(",") if listed else re.findall(r"^  {2,6}([a-z-]+) ", shown, re.MULTILINE)
    assert len(commands) >= 12
    for command in commands:
        assert f"hermes {command}" in COMMANDS, command


def test_every_slash_command_is_listed() -> None:
    for command in SLASH_COMMANDS:
        assert f"`/{command.name}" in COMMANDS, command.name


def test_every_route_of_the_api_is_described() -> None:
    for path in document("0")["paths"]:
        assert path.split("{")[0] in API, path


@pytest.mark.parametrize(("name", "text"), reference.pages().items(), ids=list(reference.pages()))
def test_generated_pages_are_current(name: str, text: str) -> None:
    assert (reference.FOLDER / name).read_text(encoding="utf-8") == text, "run `make reference` and commit the result"


@pytest.mark.parametrize("name", diagrams.DIAGRAMS)
def test_diagrams_are_current(name: str) -> None:
    text = (diagrams.FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert text == diagrams.DIAGRAMS[name]().svg(), "run `make reference` and commit the result"


def test_every_variable_that_the_code_reads_is_described() -> None:
    read = re.compile(r"environ(?:\.get\(|\[)\"([A-Z][A-Z_]+)\"")
    names = {name for path in ROOT.glob("hermes/**/*.py") for name in read.findall(path.read_text(encoding="utf-8"))}
    of_setting = {each.variable for each in SETTINGS.values()}
    plain = {"HOME", "PATH"}
    missing = {name for name in names - of_setting - plain if not name.startswith("HERMES_TEST_")}
    assert missing <= set(reference.OTHER_VARIABLES), "describe it in tests/docs/reference.py"


@pytest.mark.parametrize("document_", DOCUMENTS, ids=_name)
def test_named_make_targets_exist(document_: Path) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`make ([a-z]+)`", document_.read_text(encoding="utf-8")):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


@pytest.mark.parametrize("document_", OF_THE_TREE, ids=_name)
def test_named_files_exist(document_: Path) -> None:
    for name in _PATH.findall(document_.read_text(encoding="utf-8")):
        assert list(ROOT.glob(name)) or name in NOT_IN_THE_TREE, name


@pytest.mark.parametrize("document_", [each for each in DOCUMENTS if each.parent.name != "bench"], ids=_name)
def test_named_settings_exist(document_: Path) -> None:
    sections = "|".join({name.split(".")[0] for name in SETTINGS})
    for name in re.findall(rf"`((?:{sections})\.\w+)(?::[^`]*)?`", document_.read_text(encoding="utf-8")):
        assert name in SETTINGS or name in NOT_SETTINGS, name


def test_architecture_lists_every_package() -> None:
    tree = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("```")[1]
    listed = {name for line in _PACKAGE.findall(tree) for name in re.findall(r"\w+", line)}
    assert listed == {package.parent.name for package in ROOT.glob("hermes/*/__init__.py")}


@pytest.mark.parametrize("document_", DOCUMENTS, ids=_name)
def test_links_between_documents_lead_somewhere(document_: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#:]*)(#[^)]+)?\)", document_.read_text(encoding="utf-8")):
        file = document_.parent / target if target else document_
        assert file.exists(), target
        assert not anchor or anchor[1:] in _anchors(file), target + anchor


def _anchors(file: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
