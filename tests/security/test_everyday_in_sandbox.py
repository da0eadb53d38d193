"""Everyday work inside the sandbox: lines end as they do outside, projects build, and nothing is asked about."""

from __future__ import annotations

import random
import secrets
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from hermes.domain.turn.tool_call import Gate, Verdict
from hermes.sandbox.sandbox import Sandbox
from hermes.shell_policy.links import link_targets
from hermes.shell_policy.policy import decide, inside_rules, path_gate
from tests.security.corpus import load_everyday
from tests.security.inside import EVERY, PATH, Attackers, Ran, sandbox_of
from tests.security.outside import Outside, write
from tests.security.recorded_session import CALLS

pytestmark = pytest.mark.timeout(900 if EVERY else 120)
_SAMPLE = 60
_PARTS = 4
# These do not end, use a tree of many files, or differ by design: git's configuration is read-only, and one's home
# is another one.
_LEFT_OUT = (
    "tail -f",
    "uvicorn",
    "flask run",
    "go run ./cmd",
    "npm ",
    "npx",
    "--watch",
    "config user.email",
    "git init",
    "mvn",
)


def confined() -> list[str]:
    lines = [
        each.line for each in load_everyday() if each.confined and not any(left in each.line for left in _LEFT_OUT)
    ]
    return lines if EVERY else random.Random("everyday").sample(lines, _SAMPLE)


@pytest.fixture
async def outside(tmp_path: Path) -> AsyncIterator[Outside]:
    async with Outside(tmp_path / f"outside-{secrets.token_hex(4)}") as made:
        yield made


@pytest.fixture
def sandbox(outside: Outside) -> Sandbox:
    return sandbox_of(outside)


def make_project(work: Path) -> None:
    """Files that the lines name, so that most of them have something to do."""
    for name in ("a", "b", "x", "README.md", "b.txt", "list.txt", "notes.md", "data.txt", "config.example.yml"):
        write(work / name, "one 1\ntwo 2\n")
    write(work / "src/a.py", "import os\n\n\ndef main() -> None:  # TODO\n    print(os.getcwd())\n")
    write(work / "src/main.py", "def main() -> None:  # TODO\n    print(1)\n")
    write(work / "tests/test_main.py", "import unittest\n\n\nclass T(unittest.TestCase):\n    def test(self): pass\n")
    write(work / "a.py", "print(1)\n")
    write(work / "a.c", "int main(void) { return 0; }\n")
    write(work / "main.c", "int main(void) { return 0; }\n")
    write(work / "Makefile", "all test clean install:\n\t@echo $@\n")
    write(work / "script.sh", "#!/bin/sh\necho script\n", mode=0o755)
    write(work / "data.csv", "a,b,9\nc,d,3\n")
    write(work / "data.json", '{"a": 1}\n')
    write(work / "package.json", '{"name": "p", "version": "1.0.0", "dependencies": {}}\n')
    (work / "build").mkdir()


async def run_both(outside: Outside, sandbox: Sandbox, line: str) -> tuple[Ran, Ran]:
    ran = []
    for box, own in ((None, False), (sandbox, True)):
        attackers = Attackers(outside, box, limit_s=20)
        conversation = attackers.conversation(own=own)
        make_project(conversation.work)
        attackers.give(conversation)
        ran.append(await attackers.run(conversation, line))
    return ran[0], ran[1]


@pytest.mark.parametrize("part", range(_PARTS))
async def test_lines_end_as_they_do_outside(outside: Outside, sandbox: Sandbox, part: int) -> None:
    different = []
    for line in confined()[part::_PARTS]:
        plain, boxed = await run_both(outside, sandbox, line)
        if plain.code != boxed.code or not boxed.boxed:
            different.append((line, plain.code, boxed.code, plain.output[-300:], boxed.output[-300:]))
    assert different == []


async def in_sandbox(outside: Outside, sandbox: Sandbox, files: dict[str, str], *lines: str) -> list[Ran]:
    """Run the lines one after another in one conversation with these files."""
    attackers = Attackers(outside, sandbox, limit_s=90)
    conversation = attackers.conversation(own=True)
    for name, text in files.items():
        write(conversation.work / name, text)
    attackers.give(conversation)
    return [await attackers.run(conversation, line) for line in lines]


PYTHON_PROJECT = {
    "pyproject.toml": '[project]\nname = "sums"\nversion = "1"\n',
    "sums/__init__.py": "def add(a: int, b: int) -> int:\n    return a + b\n",
    "tests/__init__.py": "",
    "tests/test_sums.py": (
        "import unittest\nfrom sums import add\n\n\nclass Sums(unittest.TestCase):\n"
        "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n"
    ),
}


async def test_python_project_is_built_and_tested(outside: Outside, sandbox: Sandbox) -> None:
    ran = await in_sandbox(
        outside,
        sandbox,
        PYTHON_PROJECT,
        "/usr/bin/python3 -m venv --without-pip .venv",
        ". .venv/bin/activate && python -m unittest -v",
        "sed -i 's/a + b/a - b + 9/' sums/__init__.py && python -m unittest",
        "git checkout -q . 2>/dev/null; sed -i 's/a - b + 9/a + b/' sums/__init__.py && python -m compileall -q sums",
        "git add -A && git commit -qm 'Add sums' && git log --oneline | head -1",
        "rm -rf .venv sums/__pycache__ && git status --short",
    )
    assert [each.code for each in ran] == [0, 0, 1, 0, 0, 0], [each.output for each in ran]
    assert "Ran 1 test" in ran[1].output
    assert "Add sums" in ran[4].output


NODE_PROJECT = {
    "package.json": '{"name": "sums", "scripts": {"test": "node --test", "build": "node build.js"}}',
    "sums.js": "module.exports = (a, b) => a + b;\n",
    "build.js": 'require("fs").writeFileSync("out.js", require("fs").readFileSync("sums.js"));\n',
    "sums.test.js": (
        'const test = require("node:test"), assert = require("node:assert"), add = require("./sums.js");\n'
        'test("adds", () => assert.equal(add(1, 2), 3));\n'
    ),
}


@pytest.mark.skipif(not (shutil.which("node", path=PATH) and shutil.which("npm", path=PATH)), reason="no Node")
async def test_node_project_is_built_and_tested(outside: Outside, sandbox: Sandbox) -> None:
    ran = await in_sandbox(
        outside,
        sandbox,
        NODE_PROJECT,
        "npm run build && ls out.js",
        "node --test",
        "npm test",
        "sed -i 's/a + b/a - b/' sums.js && npm test",
    )
    assert [each.code for each in ran[:3]] == [0, 0, 0], [each.output for each in ran]
    assert ran[3].code == 1


def questions(*, inside: bool) -> list[str]:
    """The calls of the recorded session that a person is asked about, by the rules that the daemon uses."""
    home, work = "/home/ann", "/home/ann/project"
    place: dict[str, Any] = {"home": home, "hermes_home": f"{home}/.local/share/hermes", "work": work}
    asked = []
    for tool, text in CALLS:
        if tool == "terminal":
            only = inside_rules(conversation_directory=False) if inside else None
            gate = decide(
                text, cwd=work, deny=(), mode="manual", granted=(), targets=link_targets, only=only, **place
            )
        elif tool == "read_file" and inside:
            gate = Gate()  # the sandbox decides what it sees
        else:
            gate = path_gate(text, writing=tool != "read_file", cwd=work, **place)
        if gate.verdict is not Verdict.ALLOW:
            asked.append(text)
    return asked


def test_recorded_session_asks_nothing_inside() -> None:
    """Its work is all in the project, or is something that only the sandbox makes harmless."""
    alone, boxed = questions(inside=False), questions(inside=True)
    print(f"recorded session: {len(CALLS)} calls; asked about without a sandbox {len(alone)}, with it {len(boxed)}")
    assert boxed == []
    assert len(alone) > 3  # else the comparison says nothing


async def test_recorded_session_runs_inside(outside: Outside, sandbox: Sandbox) -> None:
    """The same commands, for real."""
    commands = [text for tool, text in CALLS if tool == "terminal"]
    ran = await in_sandbox(outside, sandbox, {**PYTHON_PROJECT, "build/old.o": ""}, *commands)
    failed = [(each.line, each.output[-300:]) for each in ran if not each.boxed or each.code not in (0, None)]
    assert failed == []
