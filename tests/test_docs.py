"""The documents tell the truth: what exists is named there, and what is named there exists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from hermes.adapters.openai_api.openapi.document import document
from hermes.services.commands.registry import COMMANDS as SLASH_COMMANDS

ROOT = Path(__file__).parent.parent
COMMANDS = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
API = (ROOT / "docs/api.md").read_text(encoding="utf-8")


def test_every_command_has_its_line() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "hermes.cli.main", "--help"], capture_output=True, text=True, check=True, timeout=30
    ).stdout
    listed = re.search(r"\{([a-z,-]+)\}", shown)
    commands = listed[1].split(",") if listed else re.findall(r"^  {2,6}([a-z-]+) ", shown, re.MULTILINE)
    assert len(commands) >= 12
    for command in commands:
        assert f"hermes {command}" in COMMANDS, command


def test_every_word_that_a_conversation_understands_is_listed() -> None:
    for command in SLASH_COMMANDS:
        assert f"`/{command.name}" in COMMANDS, command.name


def test_every_route_of_the_api_is_described() -> None:
    for path in document("0")["paths"]:
        assert path.split("{")[0] in API, path


def test_every_make_target_that_a_document_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for document_ in ROOT.glob("*.md"):
        for target in re.findall(r"`make ([a-z]+)`", document_.read_text(encoding="utf-8")):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), (document_.name, target)


def test_every_file_that_the_architecture_names_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for name in re.findall(r"`((?:actors|adapters|agent|storage|supervision|hermes)/[\w/]+\.py)`", text):
        assert (ROOT / "hermes" / name).exists() or (ROOT / name).exists(), name


def test_links_between_documents_lead_somewhere() -> None:
    for document_ in (*ROOT.glob("*.md"), *ROOT.glob("*/*.md")):
        for target in re.findall(r"\]\(([^)#:]+)\)", document_.read_text(encoding="utf-8")):
            assert (document_.parent / target).exists(), (document_.name, target)
