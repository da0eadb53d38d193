"""Slash commands as text: what is one, what it is taken for, what help says."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.services.commands.command_help import help_text
from hermes.services.commands.registry import COMMANDS, CommandGroup, Parsed, Unknown, completions, find, menu, parse
from hermes.services.commands.service import _HANDLERS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "/",
        "//",
        "/ new",
        "/etc/passwd is wrong",
        "/a.b",
        "//new",
        "say /new",
        " /new",
        "/new,",
        "/-",
        "/n/",
    ],
)
def test_path_is_not_a_command(text: str) -> None:
    assert parse(text) is None


@pytest.mark.parametrize(
    ("text", "name", "argument"),
    [
        ("/new", "new", ""),
        ("/RESET  a trip \n", "new", "a trip"),
        ("/queue first\nthen second", "queue", "first\nthen second"),
        ("/q\nfirst", "queue", "first"),
        ("/undo 2", "undo", "2"),
        ("/fork", "branch", ""),
    ],
)
def test_a_command_is_found_by_its_name_or_alias_in_any_case(text: str, name: str, argument: str) -> None:
    parsed = parse(text)
    assert isinstance(parsed, Parsed)
    assert (parsed.command.name, parsed.argument) == (name, argument)


def test_a_command_can_be_addressed_to_a_bot() -> None:
    parsed, other = parse("/status@hermes_bot now"), parse("/nothing@other")
    assert isinstance(parsed, Parsed)
    assert (parsed.command.name, parsed.bot, parsed.argument) == ("status", "hermes_bot", "now")
    assert isinstance(other, Unknown)
    assert other.bot == "other"


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [("/statsu", "status"), ("/stat", "status"), ("/comp", "compress"), ("/zzzz", ""), ("/привет", "")],
)
def test_an_unknown_word_gets_a_suggestion(text: str, suggestion: str) -> None:
    parsed = parse(text)
    assert isinstance(parsed, Unknown)
    assert parsed.suggestion == suggestion
    assert (f"Did you mean /{suggestion}?" in parsed.advice) is bool(suggestion)
    assert "/help" in parsed.advice


@given(st.text())
def test_no_text_is_too_strange_to_parse(text: str) -> None:
    parse(text)
    parse(f"/{text}")
    help_text(text)
    completions(f"/{text}")


@given(st.from_regex(r"/[a-z]{0,12}( [a-z]{0,6})?", fullmatch=True))
def test_completions_have_the_prefix_and_are_commands(prefix: str) -> None:
    for offered in completions(prefix):
        assert offered.startswith(prefix)
        assert isinstance(parse(offered), Parsed)


def test_every_word_is_offered_and_choices_come_after_the_command() -> None:
    assert completions("/") == sorted(f"/{word}" for command in COMMANDS for word in command.words)
    assert completions("/st") == ["/start", "/status", "/steer", "/stop"]
    assert completions("/yolo ") == ["/yolo on", "/yolo off"]
    assert completions("/approve s") == ["/approve session", "/approve show"]
    assert completions("/help und") == ["/help undo"]
    assert completions("hello") == completions("/nothing x") == []


def test_command_words_are_unique_and_have_handlers() -> None:
    words = [word for command in COMMANDS for word in command.words]
    assert len(set(words)) == len(words)
    assert set(_HANDLERS) == {command.name for command in COMMANDS}


def test_help_lists_all_commands_by_group_with_aligned_lines() -> None:
    text = help_text()
    assert [line for line in text.splitlines() if line and not line.startswith(" ")] == [
        group.value for group in CommandGroup
    ]
    lines = [line for line in text.splitlines() if line.startswith("  /")]
    assert len(lines) == len(COMMANDS)
    starts = {
        line.index(command.help) for line in lines for command in COMMANDS if line.split()[0] == f"/{command.name}"
    }
    assert len(starts) == 1
    assert max(map(len, lines)) <= 90


def test_help_for_a_phone_has_every_command_in_short_lines() -> None:
    text = help_text(narrow=True)
    assert all(f"/{command.name}: " in text for command in COMMANDS)
    assert max(map(len, text.splitlines())) < 70
    assert len(text) < 2400


def test_help_of_one_command_tells_its_usage_and_its_other_names() -> None:
    assert help_text("reset").splitlines()[0] == "/new [now] [title]"
    assert "Also /reset." in help_text("/new")
    assert "Not available while a turn runs." in help_text("undo")
    assert "Did you mean /undo?" in help_text("unod")


def test_the_menu_is_plain_data() -> None:
    listed = json.loads(json.dumps(menu()))
    assert [entry["name"] for entry in listed] == [command.name for command in COMMANDS]
    assert all(entry["help"] and entry["usage"].startswith("/") for entry in listed)
    command = find("Persona")
    assert command is not None
    assert command.name == "personality"
