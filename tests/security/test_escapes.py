"""Ways out of the sandbox by system calls: none works, and each works when the layer that holds it is taken away."""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import secrets
import shutil
import stat
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.domain.process.sandbox_launch import OUTER_ENVIRONMENT
from hermes.sandbox import box
from hermes.sandbox.sandbox import Sandbox, open_sandbox
from hermes.sandbox.sandbox_options import options
from hermes.sandbox.sandbox_plan import SandboxPlan, SandboxRules
from tests.sandbox.boxes import working_sandbox
from tests.security.escapes import ESCAPES, NUMBERS, Escape, Layer, script
from tests.security.inside import Attackers, Ran
from tests.security.outside import Finding, Outside, write

pytestmark = pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="no table of system calls")
_IPC_CREAT, _IPC_RMID = 0o1000, 0
_SESSION_KEYRING, _KEYCTL_UNLINK = -3, 9


@pytest.fixture
async def outside(tmp_path: Path) -> AsyncIterator[Outside]:
    async with Outside(tmp_path / f"outside-{secrets.token_hex(4)}") as made:
        shared = made.home / "shared"
        write(shared / "letter.txt", "a letter\n", mode=0o666)
        write(shared / "token", made.secret)
        write(shared / "keys/key", made.secret)
        yield made


@pytest.fixture
def sandbox(outside: Outside) -> Sandbox:
    working_sandbox()
    shared = outside.home / "shared"
    rules = SandboxRules(
        read_paths=(str(shared),), secret_paths=(str(outside.data), str(shared / "token"), str(shared / "keys"))
    )
    return open_sandbox(rules, home=str(outside.home), enabled=True)


class Kernel:
    """Things of the kernel that hold the secret outside: a key, and shared memory."""

    def __init__(self, secret: str, held: ExitStack) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.key = f"hermes-{secrets.token_hex(4)}"
        self.shm = secrets.randbelow(1 << 30) + 1
        made = self._call("add_key", b"user", self.key.encode(), secret.encode(), len(secret), _SESSION_KEYRING)
        self.keeps_keys = made > 0
        held.callback(self._call, "keyctl", _KEYCTL_UNLINK, made, _SESSION_KEYRING)
        segment = self._call("shmget", self.shm, 4096, _IPC_CREAT | 0o666)
        held.callback(self._libc.shmctl, segment, _IPC_RMID, None)
        self._libc.shmat.restype = ctypes.c_void_p
        ctypes.memmove(self._libc.shmat(segment, None, 0), secret.encode(), len(secret))

    def _call(self, name: str, *arguments: object) -> int:
        given = (ctypes.c_long(each) if isinstance(each, int) else each for each in arguments)
        return int(self._libc.syscall(ctypes.c_long(NUMBERS[name]), *given))


@pytest.fixture
def kernel(outside: Outside, sandbox: Sandbox) -> Iterator[Kernel]:
    with ExitStack() as held:
        made = Kernel(outside.secret, held)
        if made.keeps_keys:
            held.enter_context(_key_of_tool_user(sandbox))
        yield made


_HOLD_A_KEY = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
add_key, user_keyring = int(sys.argv[1]), ctypes.c_long(-4)
made = libc.syscall(ctypes.c_long(add_key), b"user", b"hermes-held", b"x", ctypes.c_size_t(1), user_keyring)
print(made > 0, flush=True)
sys.stdin.read()
"""


@contextmanager
def _key_of_tool_user(sandbox: Sandbox) -> Iterator[None]:
    """Hold a key of the user that runs the commands: a box's `/proc/keys` is empty if that user has none."""
    user = None if sandbox.user is None else sandbox.user.uid
    line = ("/usr/bin/python3", "-c", _HOLD_A_KEY, str(NUMBERS["add_key"]))
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, user=user) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        yield
        holder.stdin.close()


async def try_out(escape: Escape, outside: Outside, sandbox: Sandbox, kernel: Kernel, *, own: bool) -> Ran:
    attackers = Attackers(outside, sandbox, limit_s=20)
    conversation = attackers.conversation(own=own)
    program = script(
        escape,
        key=kernel.key,
        shm=kernel.shm,
        daemon=outside.daemon_pid,
        secret=outside.home / ".ssh/id_ed25519",
        canary=outside.canary,
        data=outside.data,
        shared=outside.home / "shared",
        abstract=outside.abstract,
        port=outside.port,
    )
    (conversation.work / "escape.py").write_text(program)
    outside.remember()
    ran = await attackers.run(conversation, "exec /usr/bin/python3 escape.py", pty=escape.terminal)
    assert ran.boxed, ran.output
    return ran


async def effects(ran: Ran, outside: Outside) -> list[str]:
    """What it reached, by its own word or as seen from outside."""
    found: list[str] = [str(each) for each in outside.findings(ran.output, ran.conversation.work)]
    found += [line for line in ran.output.splitlines() if "GOT" in line]
    for path in ran.conversation.work.rglob("*"):
        if not path.is_symlink() and path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID):
            found.append(f"setuid or setgid: {path.name}")
    if (ran.conversation.work / ".git/hooks/pre-commit").exists():
        found.append("hook")
    if not await outside.none_left():
        found.append(Finding.LEFT)
    return found


@pytest.mark.parametrize("own", [True, False], ids=["own directory", "owner's directory"])
@pytest.mark.parametrize("escape", ESCAPES, ids=lambda each: each.name)
async def test_no_escape(escape: Escape, outside: Outside, sandbox: Sandbox, kernel: Kernel, own: bool) -> None:
    """If this is root, the own directory is another user's, and an owner's is used by root without capabilities."""
    ran = await try_out(escape, outside, sandbox, kernel, own=own)
    assert await effects(ran, outside) == [], ran.output
    assert "DONE" in ran.output, ran.output


async def test_hooks_cannot_be_made_where_there_are_none(outside: Outside, sandbox: Sandbox) -> None:
    attackers = Attackers(outside, sandbox)
    conversation = attackers.conversation(own=False)
    shutil.rmtree(conversation.work / ".git/hooks")
    line = "mkdir .git/hooks; echo id > .git/hooks/pre-commit; git commit -qm x --allow-empty && echo committed"
    ran = await attackers.run(conversation, line)
    assert "committed" in ran.output
    assert list((conversation.work / ".git/hooks").iterdir()) == []


_EVIL_REPOSITORY = """
echo changed >> README.md; git add -A; git commit -qm x && echo committed
cp -r .git evil
printf '[core]\\n fsmonitor = "touch {canary}; false"\\n' >> evil/config
mv evil .git/evil
rm -f .git/commondir; mv .git/commondir .git/x; echo evil > .git/commondir
echo tried
"""


@pytest.mark.parametrize("own", [True, False], ids=["own directory", "owner's directory"])
async def test_git_outside_does_not_use_a_configuration_that_a_command_chose(
    outside: Outside, sandbox: Sandbox, own: bool
) -> None:
    attackers = Attackers(outside, sandbox)
    conversation = attackers.conversation(own=own)
    canary = conversation.work / "canary"
    ran = await attackers.run(conversation, _EVIL_REPOSITORY.format(canary=canary))
    assert "committed" in ran.output
    assert "tried" in ran.output
    await asyncio.to_thread(_git_status, conversation.work)
    assert not canary.exists()


def _git_status(work: Path) -> None:
    subprocess.run(("git", "-c", "safe.directory=*", "status"), cwd=work, check=True, env=OUTER_ENVIRONMENT)


async def test_file_that_names_a_repository_cannot_be_replaced(outside: Outside, sandbox: Sandbox) -> None:
    """As in a worktree or a submodule: another one could have hooks."""
    attackers = Attackers(outside, sandbox)
    conversation = attackers.conversation(own=False)
    shutil.rmtree(conversation.work / ".git")
    write(conversation.work / ".git", "gitdir: /elsewhere\n")
    line = "echo 'gitdir: evil' > .git; rm -f .git; mv .git x; git init -q evil; cp -r evil/.git .git; echo tried"
    ran = await attackers.run(conversation, line)
    assert "tried" in ran.output
    assert (conversation.work / ".git").read_text() == "gitdir: /elsewhere\n"


def held_by_this_kernel(escape: Escape, kernel: Kernel) -> str:
    """Why it fails here without our layer, too."""
    if escape.only_root and os.geteuid() != 0:
        return "it is for root"
    match escape.name:
        case "vsock" if not Path("/dev/vsock").exists():
            return "no vsock"
        case "keyring" | "names of keys" if not kernel.keeps_keys:
            return "no keyring"
        case "typed into the terminal" if not _types():
            return "the kernel refuses TIOCSTI"
    return ""


def _types() -> bool:
    setting = Path("/proc/sys/dev/tty/legacy_tiocsti")
    return not setting.exists() or setting.read_text().strip() == "1"


def without(layers: tuple[Layer, ...], chosen: list[str]) -> list[str]:
    """The options of bubblewrap but for those of these layers."""
    kept: list[str] = []
    at = 0
    while at < len(chosen):
        option = chosen[at]
        size = 3 if option in ("--bind", "--ro-bind", "--symlink") else 2 if option == "--cap-drop" else 1
        target = chosen[at + size - 1]
        dropped = (
            option in layers
            or (Layer.PROC_SYS in layers and target == "/proc/sys")
            or (Layer.PROC_KEYS in layers and target.startswith("/proc/key"))
            or (Layer.GIT_PIN in layers and target.endswith("/.git"))
            or (Layer.GIT_READ_ONLY in layers and "/.git/" in target)
        )
        kept += [] if dropped else chosen[at : at + size]
        at += size
    return kept


@pytest.mark.parametrize("escape", [each for each in ESCAPES if each.needs], ids=lambda each: each.name)
async def test_escape_works_without_its_layers(
    escape: Escape, outside: Outside, sandbox: Sandbox, kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason := held_by_this_kernel(escape, kernel):
        pytest.skip(reason)

    def weakened(plan: SandboxPlan, *, terminal: bool = False) -> list[str]:
        return without(escape.needs, options(plan, terminal=terminal))

    monkeypatch.setattr(box, "options", weakened)
    weak = replace(sandbox, seccomp=b"") if Layer.SECCOMP in escape.needs else sandbox
    ran = await try_out(escape, outside, weak, kernel, own=not escape.only_root)
    assert await effects(ran, outside) != [], ran.output
