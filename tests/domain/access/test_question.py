"""How leave is asked for, in the words of every surface."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.cli.chat.turn_question import details
from hermes.domain.access.question import CUT, LONGEST, asked_by, is_long, whole_question
from hermes.domain.ids import TurnId
from hermes.domain.turn.tool_call import Call, Gate, Verdict
from hermes.shell_policy.policy import decide
from hermes.tui.view_model import OpenPrompt


def asked(command: str, **more: bool) -> str:
    gate = decide(command, cwd="/tmp/w", home="/home/ann", deny=(), mode="manual", granted=())
    call = Call(id="c1", name="terminal", summary=f"terminal: {command}", gate=gate)
    return asked_by(call, TurnId("t"), **more).text


def test_leave_is_asked_for_in_a_question_with_the_command_as_code() -> None:
    assert asked("rm -rf build", for_good=False) == (
        "May I run this?\n`rm -rf build`\nIt deletes a directory tree.\n"
        "(session: everything of the kind recursive-delete, until this conversation ends)"
    )
    assert asked("rm -rf build").endswith("; always: for good, in every conversation)")


def test_of_a_longer_line_the_part_is_named_that_somebody_is_asked_about() -> None:
    assert asked("cd a && rm -rf b").split("\n")[1:3] == [
        "`cd a && rm -rf b`",
        "`rm -rf b` deletes a directory tree.",
    ]


def test_backticks_of_a_command_are_shown() -> None:
    assert "\n```\nrm -rf `cat list`\n```\n" in asked("rm -rf `cat list`")


@pytest.mark.parametrize("rules", [(), ("r",)])
def test_another_tool_is_named(rules: tuple[str, ...]) -> None:
    gate = Gate(verdict=Verdict.ASK, reason="it changes /etc/hosts, a part of the system", rules=rules, once=True)
    call = Call(id="c1", name="write_file", summary="write_file: /etc/hosts", gate=gate)
    assert asked_by(call, TurnId("t")).text == (
        "May I do this?\n`write_file: /etc/hosts`\nIt changes /etc/hosts, a part of the system."
    )


def whole(command: str) -> Call:
    gate = decide(command, cwd="/tmp/w", home="/home/ann", deny=(), mode="manual", granted=())
    return Call(id="c1", name="terminal", summary=f"terminal: {command[:20]}…", whole=command, gate=gate)


def test_whole_command_is_shown_and_not_its_summary() -> None:
    command = "cd a\n\nrm -rf b # " + "x" * 1500
    assert f"```\n{command}\n```" in asked_by(whole(command), TurnId("t")).text


def test_every_finding_is_shown_the_worst_first() -> None:
    command = "rm -r a; git push -f; cat ~/.ssh/id_rsa; kill -9 5; sudo ls; curl x | sh"
    lines = asked_by(whole(command), TurnId("t")).text.split("\n")
    findings = [line for line in lines if line.startswith("- ")]
    assert len(findings) >= 6
    assert "which contains credentials" in findings[0]
    assert "code from the network" in findings[1]


def test_characters_that_hide_something_are_escaped() -> None:
    text = asked_by(whole("echo \u202etxt.exe \x1b[2J \u2066x\u2069 caf\u00e9 \U0001f44d"), TurnId("t")).text
    assert "\\u202etxt.exe \\x1b[2J \\u2066x\\u2069 café 👍" in text
    assert "characters that hide or disguise what it does: U+202E, U+001B, U+2066" in text


def test_a_fence_in_a_command_does_not_end_the_code() -> None:
    text = asked_by(whole("rm -r a\n```\nharmless text"), TurnId("t")).text
    assert text.count("```") == 2


def test_a_long_question_is_cut_for_a_chat_and_whole_elsewhere() -> None:
    call = whole("rm -rf " + "x" * 5_000)
    assert is_long(call)
    brief = asked_by(replace(call, choices=CUT, cut=True), TurnId("t"), brief=True).text
    assert len(brief) < LONGEST
    assert "of 5,007 characters" in brief
    assert "/approve show" in brief
    assert "x" * 5_000 in asked_by(call, TurnId("t")).text
    assert "x" * 5_000 in whole_question(call)


def test_a_terminal_shows_all_of_a_long_question() -> None:
    call = whole("rm -rf a \\\n" + "x" * 5_000)
    question = asked_by(call, TurnId("t"))
    lines = details(
        OpenPrompt(call="c1", name="terminal", question=question.text, choices=question.choices, approval=True)
    )
    assert "x" * 5_000 in lines
