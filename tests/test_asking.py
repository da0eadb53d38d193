"""How leave is asked for, in the words of every surface."""

from __future__ import annotations

import pytest

from hermes.asking import asked_by
from hermes.tools.approval.policy import decide
from hermes.types import Call, Gate, TurnId, Verdict


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
