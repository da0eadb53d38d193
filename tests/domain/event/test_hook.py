"""Answers of hooks, and the gates that they lead to."""

from __future__ import annotations

import json

import pytest

from hermes.domain.event.hook import Hook, HookAnswer, known_event, read_answer, stricter
from hermes.domain.turn.tool_call import Gate, Verdict

HOOK = Hook(name="h", on=("pre_tool_call",), command="x")


@pytest.mark.parametrize(
    ("code", "stdout", "stderr", "expected"),
    [
        (0, "", "", HookAnswer()),
        (0, "fine", "", HookAnswer()),
        (2, "", "no rm here", HookAnswer(verdict=Verdict.BLOCK, reason="no rm here")),
        (1, "", "boom\nboom", HookAnswer(problem="exit code 1: boom boom")),
        (0, '{"decision": "block", "reason": "r"}', "", HookAnswer(verdict=Verdict.BLOCK, reason="r")),
        (0, '{"action": "block", "message": "m"}', "", HookAnswer(verdict=Verdict.BLOCK, reason="m")),
        (0, '{"context": "note"}', "", HookAnswer(context="note")),
        (0, '{"continue": false, "stopReason": "s"}', "", HookAnswer(verdict=Verdict.BLOCK, reason="s")),
        (0, '{"decision": "approve"}', "", HookAnswer()),
        (0, "{broken", "", HookAnswer(problem="its answer is not valid JSON")),
        (
            0,
            json.dumps({"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "sure?"}}),
            "",
            HookAnswer(verdict=Verdict.ASK, reason="sure?"),
        ),
        (0, json.dumps({"hookSpecificOutput": {"additionalContext": "c"}}), "", HookAnswer(context="c")),
    ],
)
def test_answer_is_read_in_the_forms_of_other_agents(
    code: int, stdout: str, stderr: str, expected: HookAnswer
) -> None:
    assert read_answer(code, stdout, stderr) == expected


def test_hook_makes_a_gate_stricter_and_never_weaker() -> None:
    block, ask = HookAnswer(verdict=Verdict.BLOCK), HookAnswer(verdict=Verdict.ASK)
    asked = Gate(verdict=Verdict.ASK, reason="rule", rules=("r",))
    assert stricter(Gate(), HOOK, block).verdict is Verdict.BLOCK
    assert stricter(asked, HOOK, block).verdict is Verdict.BLOCK
    assert stricter(Gate(), HOOK, ask).verdict is Verdict.ASK
    assert stricter(asked, HOOK, HookAnswer()) == asked
    assert stricter(asked, HOOK, ask) == asked


def test_failed_hook_blocks_only_if_it_is_configured_so() -> None:
    failed = HookAnswer(problem="exit code 1")
    assert stricter(Gate(), HOOK, failed) == Gate()
    closed = Hook(name="h", on=("pre_tool_call",), command="x", closed=True)
    assert stricter(Gate(), closed, failed).verdict is Verdict.BLOCK


def test_events_have_the_names_of_other_agents_too() -> None:
    assert known_event("PreToolUse") == "pre_tool_call"
    assert known_event("gateway:startup") == "daemon:start"
    assert known_event("command:deploy") == "command:deploy"
    with pytest.raises(ValueError, match="unknown event"):
        known_event("session:begin")


def test_hook_takes_its_events_and_tools() -> None:
    hook = Hook(name="h", on=("session:*", "command:deploy"), command="x", matcher="write_file|patch")
    assert hook.takes("session:reset")
    assert hook.takes("command:deploy")
    assert not hook.takes("agent:start")
    assert not hook.takes("command:new")
    assert hook.concerns("patch")
    assert not hook.concerns("patches")
