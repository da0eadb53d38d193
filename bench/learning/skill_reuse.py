"""Ten tasks of one family. The first one is solved by trying; a skill is kept from it, and the next nine use that.

The same ten tasks without skills are the comparison.
"""

from __future__ import annotations

import json
import re
import statistics
import tempfile
from pathlib import Path
from typing import Any

from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import Reply
from tests.support.scripted_model import ScriptedModel, answered, calling

TASKS = 10
_CHARS_PER_TOKEN = 4
_SCRIPT = """#!/bin/sh
for option in region signer channel checksum; do
  case " $* " in
    *" --$option="*) ;;
    *) echo "error: --$option is missing; try --$option=$(cat ".$option")"; exit 2;;
  esac
done
echo "released $1"
"""
_VALUES = {"region": "north-3", "signer": "mara", "channel": "stable", "checksum": "blake2"}
_SKILL = """---
name: release-version
description: How to release a version with ./release.sh; all options that it needs
---
# Release a version

Run this, with the number of the version in place of VERSION:

    {command}
"""
_TASK = re.compile(r"Release version (\d+)")
_HINT = re.compile(r"try (--\w+=[\w-]+)")


class ReleasingModel:
    """Model that tries until it works, and keeps what worked as a skill. It knows nothing but what it sees."""

    def __init__(self) -> None:
        self.requests: list[int] = []

    def reply(self, body: dict[str, Any]) -> Reply | None:
        self.requests.append(len(json.dumps(body)))
        messages = body["messages"]
        version = _TASK.search(str(messages[1]["content"]))
        assert version is not None
        tools = {tool["function"]["name"] for tool in body.get("tools", ())}
        made = [call["function"] for each in messages for call in each.get("tool_calls") or ()]
        results = [str(each["content"]) for each in messages if each["role"] == "tool"]
        if not results:
            if "skill_view" in tools and "release-version" in str(messages[0]["content"]):
                return calling(1, ("skill_view", {"name": "release-version"}))
            return self._run(f"./release.sh {version[1]}")
        if made[-1]["name"] == "skill_manage" or "released" in results[-1]:
            return self._after_success(made, tools, version[1])
        if made[-1]["name"] == "skill_view":
            learned = re.search(r"(\./release\.sh VERSION.*)", results[-1])
            return self._run((learned[1] if learned else "./release.sh VERSION").replace("VERSION", version[1]))
        hint = _HINT.search(results[-1])
        if hint is None:
            return answered(f"It failed: {results[-1][:200]}")
        return self._run(f"{json.loads(made[-1]['arguments'])['command']} {hint[1]}")

    def _after_success(self, made: list[dict[str, Any]], tools: set[str], version: str) -> Reply:
        tried = [call for call in made if call["name"] == "terminal"]
        if made[-1]["name"] == "terminal" and len(tried) > 2 and "skill_manage" in tools:  # worth keeping
            command = json.loads(tried[-1]["arguments"])["command"].replace(version, "VERSION", 1)
            content = _SKILL.format(command=command)
            return calling(1, ("skill_manage", {"action": "create", "name": "release-version", "content": content}))
        return answered(f"Version {version} is released.")

    def _run(self, command: str) -> Reply:
        return calling(1, ("terminal", {"command": command}))


def run() -> dict[str, float]:
    with_skills, without = _measured(""), _measured("tools: {disabled: [skills]}\n")
    return {f"skill_{name}": value for name, value in with_skills.items()} | {
        f"no_skill_{name}": value for name, value in without.items()
    }


def _measured(config: str) -> dict[str, float]:
    learner = ReleasingModel()
    with tempfile.TemporaryDirectory(prefix="hermes-bench-") as folder, ScriptedModel(idle_timeout_s=60) as model:
        _prepare(Path(folder))
        model.on_request = learner.reply
        settings = (
            f"{model.config}auxiliary: {{title: none, review: none}}\nsandbox: {{mode: 'off'}}\n"
            f"approvals: {{mode: 'off'}}\nterminal: {{cwd: '{folder}'}}\n{config}"
        )
        steps: list[float] = []
        tokens: list[float] = []
        released = 0
        with DaemonProcess(config=settings) as daemon:
            for number in range(TASKS):
                before = len(learner.requests)
                answer = daemon.ask(f"Release version {100 + number}.", session=f"task-{number}").text
                released += f"Version {100 + number} is released." in str(answer)
                steps.append(len(learner.requests) - before)
                tokens.append(sum(learner.requests[before:]) / _CHARS_PER_TOKEN)
    return {
        "solved": float(released),
        "first_calls": float(steps[0]),
        "first_tokens": tokens[0],
        "next_calls": statistics.mean(steps[1:]),
        "next_tokens": statistics.mean(tokens[1:]),
    }


def _prepare(folder: Path) -> None:
    script = folder / "release.sh"
    script.write_text(_SCRIPT)
    script.chmod(0o755)
    for name, value in _VALUES.items():
        (folder / f".{name}").write_text(value)
