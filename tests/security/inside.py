"""Command lines run by the terminal tool, each in a conversation of its own, and judged from outside."""

from __future__ import annotations

import asyncio
import atexit
import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from hermes.domain.access.role import Role
from hermes.domain.ids import SessionId, TurnId
from hermes.domain.turn.tool_call import Gate
from hermes.processes.child import ChildLimits
from hermes.sandbox.sandbox import Sandbox, open_sandbox
from hermes.sandbox.sandbox_plan import SandboxRules
from hermes.tools.terminal.terminal import terminal_tool
from hermes.tools.terminal.terminal_settings import TerminalSettings
from hermes.tools.tool import Tool, ToolContext, ToolError, ToolResult
from tests.sandbox.boxes import working_sandbox
from tests.security.corpus import Attack, Effect
from tests.security.outside import Finding, Outside, write

EVERY: Final = bool(os.environ.get("HERMES_TEST_EVERY"))  # all lines, not a sample of them
PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
LIMITS: Final = ChildLimits(file_bytes=8 << 20, processes=100)
LINE_S: Final = 3.0
_AT_ONCE: Final = 6
_WRITE_VARIABLES: Final = ("F", "DEST", "TARGET", "X", "LIST", "FILES", "FILE", "LINK", "LOG")
_READ_VARIABLES: Final = ("F", "KEY", "FILE", "FILES", "SRC", "DIRS")

_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    folder: Path
    work: Path

    def context(self, call: str = "call_1") -> ToolContext:
        return ToolContext(
            session=SessionId(self.folder.name), turn=TurnId("turn"), call=call, platform="test", folder=self.folder
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A line with its output."""

    line: str
    conversation: Conversation
    output: str
    started: bool  # its first words came out
    boxed: bool  # and said that they come from a sandbox
    code: int | None = None  # None: it did not end by itself


class Attackers:
    """Conversations in an outside world. With a sandbox every other one works in a directory of the owner's."""

    def __init__(self, outside: Outside, sandbox: Sandbox | None, *, limit_s: float = LINE_S) -> None:
        self.outside = outside
        self.sandbox = sandbox
        self._limit_s = limit_s
        self._works: dict[Path, Path] = {}

    def conversation(self, *, own: bool) -> Conversation:
        """`own`: it works in its own directory, which root gives to another user. Else in one of the owner's."""
        name = f"s{next(_numbers)}"
        folder = self.outside.work_dir(self.outside.data / "work" / name)
        work = folder / "files" if own else self.outside.work_dir(self.outside.home / name)
        shutil.copytree(_repository(), work, symlinks=True, dirs_exist_ok=True)
        self._works[folder] = work
        made = Conversation(folder=folder, work=work)
        self.give(made)
        return made

    def give(self, conversation: Conversation) -> None:
        """What was put into a conversation's own directory belongs to the user of its tools."""
        user = self.sandbox.user if self.sandbox is not None else None
        if user is not None and conversation.work.parent == conversation.folder:
            for path in (conversation.work, *conversation.work.rglob("*")):
                os.chown(path, user.uid, user.gid, follow_symlinks=False)

    async def run(self, conversation: Conversation, line: str, *, exports: str = "", pty: bool = False) -> Ran:
        mark = f"began-{conversation.folder.name}"
        command = f"echo {mark} on $(cat /proc/sys/kernel/hostname)\n{exports}\n{line}"
        text, result = "", None
        try:
            result = await self._tool().run(conversation.context(), command=command, timeout=self._limit_s, pty=pty)
            assert isinstance(result, ToolResult)
            text = result.text
        except ToolError as error:
            text = str(error)
        code = text.rpartition("[exit code ")[2].partition("]")[0].partition(",")[0]
        return Ran(
            line=line,
            conversation=conversation,
            output=text,
            started=mark in text,
            boxed=f"{mark} on sandbox" in text,
            code=int(code) if result is not None and code.isdigit() else None,
        )

    async def attack(self, attacks: Sequence[Attack]) -> list[Ran]:
        """Run all of them, several at a time."""
        prepared = [
            (attack, self._prepared(attack, own=bool(number % 2) or _multiplies(attack)))
            for number, attack in enumerate(attacks)
        ]
        self.outside.remember()
        gate = asyncio.Semaphore(_AT_ONCE)

        async def one(attack: Attack, conversation: Conversation) -> Ran:
            line = self.outside.target(conversation.work).fill(attack.line)
            async with gate:
                ran = await self.run(conversation, line, exports=self._exports(attack))
                if not ran.started:  # the machine stood still
                    ran = await self.run(conversation, line, exports=self._exports(attack))
                return ran

        return await asyncio.gather(*(one(attack, conversation) for attack, conversation in prepared))

    async def judged(self, ran: Iterable[Ran]) -> list[Finding]:
        """What all of them did together."""
        ran = list(ran)
        found = self.outside.findings(
            "\n".join(each.output for each in ran), *(each.conversation.folder for each in ran),
            *(each.conversation.work for each in ran),
        )  # fmt: skip
        boxed = self.sandbox is not None
        if not all(each.boxed if boxed else each.started for each in ran):
            found.append(Finding.NOT_RUN)
        if not await self.outside.none_left():
            found.append(Finding.LEFT)
            self.outside.end_left_processes()
        return found

    def _tool(self) -> Tool:
        settings = TerminalSettings(
            environ={"PATH": PATH, "HOME": str(self.outside.home), "LANG": "C.UTF-8", "MY_KEY": self.outside.secret},
            work_of=self._work_of,
            limits=LIMITS,
            memory_bytes=1 << 30,
        )
        return terminal_tool(settings, lambda *_, **__: Gate(), None, self.sandbox)

    def _work_of(self, folder: Path, role: Role) -> str:
        return str(self._works[folder])

    def _prepared(self, attack: Attack, *, own: bool) -> Conversation:
        """What the lines expect: lists that name places outside, and a program of the attacker's."""
        conversation = self.conversation(own=own)
        aim = self._aim(attack)
        for name in ("list", "where"):
            write(conversation.work / name, f"{aim}\n")
        for name in ("x", "evil", "h/pre-commit", "evil.sh"):
            write(conversation.work / name, f"#!/bin/sh\ntouch {self.outside.canary}.made\n", mode=0o755)
        write(conversation.work / "evil.mk", f".PHONY: x\nx:;touch {self.outside.canary}.made\n")
        write(conversation.work / "a.py", "print(1)\n")
        write(conversation.work / "a.c", "int main(void) { return 0; }\n")
        self.give(conversation)
        return conversation

    def _aim(self, attack: Attack) -> str:
        reading = attack.effect is Effect.READ_SECRET
        return str(self.outside.home / ".ssh/id_ed25519" if reading else self.outside.canary)

    def _exports(self, attack: Attack) -> str:
        """Values for the variables of lines whose operands are not known before they run."""
        if not attack.kind.startswith("unknown-operand"):
            return ""
        names = _READ_VARIABLES if attack.effect is Effect.READ_SECRET else _WRITE_VARIABLES
        aim = self._aim(attack)
        values = {**dict.fromkeys(names, aim), "DIR": str(Path(aim).parent), "OUT": str(self.outside.home)}
        return "export " + " ".join(f"{name}={value}" for name, value in values.items())


def sandbox_of(outside: Outside) -> Sandbox:
    """One for which the fake home and data directories are the owner's. Blocking."""
    working_sandbox()
    return open_sandbox(SandboxRules(secret_paths=(str(outside.data),)), home=str(outside.home), enabled=True)


@cache
def _repository() -> Path:
    """A git repository with two commits and the file `a.txt`, to be copied."""
    root = Path(tempfile.mkdtemp(prefix="repository-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    environ = {"PATH": PATH, "HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1"}
    for name in ("AUTHOR", "COMMITTER"):
        environ |= {f"GIT_{name}_NAME": "ann", f"GIT_{name}_EMAIL": "ann@example.com"}
    work = root / "work"
    write(work / "a.txt", "one\n")
    for arguments in (
        ("init", "-q", "-b", "main"), ("config", "user.name", "ann"), ("config", "user.email", "ann@example.com"),
        ("add", "a.txt"), ("commit", "-qm", "first"), ("commit", "-qm", "second", "--allow-empty"),
    ):  # fmt: skip
        subprocess.run(("git", *arguments), cwd=work, env=environ, check=True)
    return work


def _multiplies(attack: Attack) -> bool:
    """Whether it fills the table of processes: the kernel holds root to no limit, and other tests run beside it."""
    return ":|:" in attack.line or "fork while" in attack.line
