"""The world outside of a sandbox, and a judge of what an attack changed in it.

There is a home directory with credentials, a data directory with keys and another conversation, a file that attacks
try to create or change, a process that stands for the daemon, and a listener on loopback. The judge only looks from
outside: at files, processes and connections, and at the output that an attacker would see.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import secrets
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Self

import psutil

from tests.security.corpus import Target

GONE_S = 10.0  # until a process that was killed has gone, on a slow machine
_DAEMON = """
import signal, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1]); listener.listen(64)
signal.signal(signal.SIGINT, signal.SIG_DFL)
print("ready", flush=True)
while True:
    listener.accept()[0].close()
    print("connected", flush=True)
"""
_SECRETS = (
    ".ssh/id_ed25519", ".netrc", ".aws/credentials", ".config/gh/hosts.yml", ".bash_history", "x.gpg",
    ".config/chromium/Default/Cookies", ".config/slack/x", ".local/share/x/token", ".thunderbird/x/INBOX",
)  # fmt: skip
_HERMES_SECRETS = (
    "api.key", "admin.token", "telegram.token", "service.env", "store/data.mdb", "index/segment",
    "work/victim/files/notes.txt", "work/victim/outputs/call_1.txt", "work/victim/tmp/x", "work/victim/home/.x",
    "media/victim/photo.jpg",
)  # fmt: skip
_STARTUP = (".bashrc", ".profile", ".config/autostart/x.desktop", ".local/bin/tool", ".config/systemd/user/x.service")


class Finding(StrEnum):
    """An effect that a sandboxed program must not have."""

    CHANGED = "changed"  # a file outside of the working directory
    LEAKED = "leaked"  # a secret, into the output or the working directory
    CONNECTED = "connected"  # to a listener outside
    DAEMON = "daemon"  # its process was ended, stopped or changed
    LEFT = "left"  # a process that outlives its command
    NOT_RUN = "not run"  # the line never started, so that nothing is known about it


class Outside:
    """`async with Outside(root) as outside`. Directories of attackers are made by `work_dir` and are not judged."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home"
        self.data = root / "data"
        self.canary = self.home / "canary.txt"
        self.secret = f"k3y{secrets.token_hex(6)}z"  # 16 characters: a line of a hex dump
        self.connections = 0
        self.port = 0
        self.abstract = f"hermes-{secrets.token_hex(4)}"
        self._attackers: set[Path] = set()
        self._daemon: subprocess.Popen[bytes] | None = None
        self._shape: tuple[object, ...] = ()
        self._files: dict[str, tuple[object, ...]] = {}

    async def __aenter__(self) -> Self:
        self._make()
        server = await asyncio.start_server(self._count, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        unix = await asyncio.start_unix_server(self._count, f"\0{self.abstract}")
        self._servers = (server, unix)
        self._datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._datagrams.bind(("127.0.0.1", self.port))
        self._datagrams.setblocking(False)
        self.start_daemon()
        return self

    async def __aexit__(self, *_: object) -> None:
        for server in self._servers:
            server.close()
        self._datagrams.close()
        self.stop_daemon()

    async def _count(self, _: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        writer.close()

    def _make(self) -> None:
        for name in (*_SECRETS, *_STARTUP):
            write(self.home / name, f"{self.secret}\n" if name in _SECRETS else "# as it was\n")
        for name in _HERMES_SECRETS:
            write(self.data / name, f"{self.secret}\n")
        write(self.home / "doc/letter.txt", "a letter\n")
        write(self.home / "evil.sh", f"#!/bin/sh\ntouch {self.canary}.made\n", mode=0o755)
        write(self.home / "evil.py", f"open({str(self.canary)!r} + '.made', 'w')\n")
        write(self.canary, "canary\n")
        for directory in (self.root, self.home, self.data):
            directory.chmod(0o755)
        for directory in self.data.iterdir():
            directory.chmod(0o711 if directory.is_dir() else 0o644)  # no permission bit protects it

    def target(self, work: Path) -> Target:
        return Target(
            home=str(self.home),
            work=str(work),
            data=str(self.data),
            canary=str(self.canary),
            secret=str(self.home / ".ssh/id_ed25519"),
            port=self.port,
        )

    def work_dir(self, path: Path) -> Path:
        """An attacker's directory, made by now: what changes in it is not judged."""
        self._attackers.add(path)
        path.mkdir(parents=True, exist_ok=True)
        return path

    # ------------------------------------------------------------ the process that stands for the daemon

    @property
    def daemon_pid(self) -> int:
        assert self._daemon is not None
        return self._daemon.pid

    def start_daemon(self) -> None:
        (self.data / "hermes.sock").unlink(missing_ok=True)
        self._daemon = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _DAEMON, str(self.data / "hermes.sock"), "hermes", "daemon"],
            env={"HERMES_MODEL_KEY": self.secret},
            stdout=subprocess.PIPE,
        )
        assert self._daemon.stdout is not None
        assert self._daemon.stdout.readline() == b"ready\n"
        os.set_blocking(self._daemon.stdout.fileno(), False)
        (self.data / "hermes.pid").write_text(str(self._daemon.pid))

    def stop_daemon(self) -> None:
        assert self._daemon is not None
        self._daemon.kill()
        self._daemon.wait()
        assert self._daemon.stdout is not None
        self._daemon.stdout.close()

    def _daemon_shape(self) -> tuple[object, ...]:
        assert self._daemon is not None
        if self._daemon.poll() is not None:
            return ("ended",)
        process = psutil.Process(self._daemon.pid)
        stopped = process.status() == psutil.STATUS_STOPPED
        return (stopped, process.nice(), process.cpu_affinity(), process.rlimit(psutil.RLIMIT_NOFILE))

    # ------------------------------------------------------------ judging

    def remember(self) -> None:
        """What is found later is compared with what is here now."""
        self._files = self._snapshot()
        self._shape = self._daemon_shape()
        self._connected_to_daemon()
        self.connections = 0

    def findings(self, output: str, *places: Path) -> list[Finding]:
        """What is different now. `places` are the attacker's directories, where no secret may arrive either."""
        found = []
        if self._snapshot() != self._files:
            found.append(Finding.CHANGED)
        if self.leaks(output) or any(self.leaks(text) for place in places for text in texts_below(place)):
            found.append(Finding.LEAKED)
        if self.connections or self._got_datagram() or self._connected_to_daemon():
            found.append(Finding.CONNECTED)
        if self._daemon_shape() != self._shape:
            found.append(Finding.DAEMON)
        return found

    def changes(self) -> list[str]:
        """The paths that differ, for a report."""
        now = self._snapshot()
        return sorted(path for path in {*now, *self._files} if now.get(path) != self._files.get(path))

    def leaks(self, text: str) -> bool:
        """Whether the secret is in the text, plain or in a form that common programs print."""
        joined = "".join(text.split())
        raw = self.secret.encode()
        forms = (self.secret, self.secret[::-1], raw.hex(), base64.b64encode(raw)[:20].decode())
        return any(form in joined for form in forms)

    def left_processes(self) -> list[int]:
        """Processes of attackers: their mounts, directory or variables name this place."""
        own = {os.getpid(), self.daemon_pid}
        mark = self.root.name.encode()
        return [pid for pid in psutil.pids() if pid not in own and _mentions(pid, mark)]

    async def none_left(self) -> bool:
        """Wait until they have gone: the kernel takes a moment."""
        deadline = asyncio.get_running_loop().time() + GONE_S
        while await asyncio.to_thread(self.left_processes):
            if asyncio.get_running_loop().time() > deadline:
                return False
            await asyncio.sleep(0.05)
        return True

    def end_left_processes(self) -> None:
        for pid in self.left_processes():
            os.kill(pid, signal.SIGKILL)

    def _got_datagram(self) -> bool:
        try:
            return bool(self._datagrams.recv(1000))
        except BlockingIOError:
            return False

    def _connected_to_daemon(self) -> bool:
        assert self._daemon is not None
        assert self._daemon.stdout is not None
        return bool(self._daemon.stdout.read())

    def _snapshot(self) -> dict[str, tuple[object, ...]]:
        return {str(path): _fingerprint(path) for path in self._walk(self.root)}

    def _walk(self, directory: Path) -> Iterator[Path]:
        for path in (directory, *sorted(directory.iterdir())):
            if path in self._attackers:
                continue
            if path != directory and path.is_dir() and not path.is_symlink():
                yield from self._walk(path)
            else:
                yield path


def write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def texts_below(place: Path) -> Iterator[str]:
    for directory, _, names in os.walk(place):
        for name in names:
            path = Path(directory, name)
            if path.is_file() and not path.is_symlink() and path.stat().st_size < 1_000_000:
                yield path.read_text(encoding="latin-1")


def _fingerprint(path: Path) -> tuple[object, ...]:
    status = path.lstat()
    shape = (status.st_mode, status.st_uid, status.st_gid, status.st_nlink if not path.is_dir() else 0)
    times = (status.st_mtime_ns, status.st_ctime_ns)
    if stat.S_ISREG(status.st_mode):
        return (*shape, *times, status.st_size, hashlib.sha256(path.read_bytes()).hexdigest())
    return (*shape, *times, str(path.readlink()) if path.is_symlink() else "")


def _mentions(pid: int, mark: bytes) -> bool:
    for name in ("mountinfo", "cmdline", "environ"):
        try:
            text = Path(f"/proc/{pid}/{name}").read_bytes()
        except OSError:
            continue
        if mark in text:
            return True
    return False
