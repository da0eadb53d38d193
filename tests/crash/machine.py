"""Faults of the machine under the real daemon, and a talk that goes through them and is judged in the end.

A fault is a context: inside, the disk is full, say; after it, the disk has space again. Where a fault cannot be made,
its test is skipped and says why.
"""

from __future__ import annotations

import http.client
import os
import resource
import shutil
import subprocess
import tempfile
import time
import urllib.error
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

import pytest

from tests.crash.survey import survey
from tests.support.daemon_process import Answer, DaemonProcess
from tests.support.judge import Acknowledged, Delivered, History, Sent, judge
from tests.support.scripted_model import ScriptedModel, check_valid
from tests.support.waiting import eventually

EVERY: Final = bool(os.environ.get("HERMES_TEST_EVERY"))  # all places where a fault can strike, not a sample of them
GONE: Final = (urllib.error.URLError, http.client.HTTPException, ConnectionError, TimeoutError)


class DaemonTalk:
    """What people said to a daemon and what they were told. The same said again is the same message."""

    def __init__(self, daemon: DaemonProcess, model: ScriptedModel) -> None:
        self.daemon = daemon
        self._model = model
        self._history = History(surveyed=True)
        self._heard: set[str] = set()

    def say(self, text: str, session: str = "s", *, shown: bool = True) -> Answer | None:
        """None: the daemon went away before it had answered. What is not `shown` is no news for the model."""
        self._history.add(Sent(inbound=text, at=time.monotonic()))
        key = blake2b(text.encode(), digest_size=16).hexdigest()
        try:
            answer = self.daemon.ask(text, session=session, Idempotency_Key=key)
        except GONE:
            return None
        if answer.status == 200 and shown:
            self._take_down(text, answer)
        return answer

    def _take_down(self, text: str, answer: Answer) -> None:
        turn = answer.json()["hermes"]["turn_id"]
        self._history.add(Acknowledged(inbound=text, at=time.monotonic(), session=answer.session, turn=turn))
        if text not in self._heard and "pending" not in answer.json()["hermes"]:
            self._heard.add(text)
            self._history.add(Delivered(to="client", turn=turn, text=answer.text))

    def say_until_heard(self, text: str, session: str = "s", *, shown: bool = True) -> str:
        """The answer, however often it takes to ask; refusals are for now, and say so."""

        def heard() -> Answer | None:
            answer = self.say(text, session, shown=shown)
            if answer is None or answer.status == 200:
                return answer
            assert answer.status in (429, 503), answer.body
            return None

        found: Answer = eventually(heard, 30)
        return found.text

    def check(self) -> None:
        """Ask the judge. The daemon is to have gone through it all without a complaint, and to end in order."""
        assert "Traceback" not in self.daemon.stderr()
        assert self.daemon.terminate() == 0
        self._history.add(*survey(self.daemon.home))
        for request in self._model.requests:
            check_valid([message for message in request["messages"] if message["role"] != "system"])
        assert judge(self._history) == []


# ---------------------------------------------------------------- a full disk


@contextmanager
def no_file_may_grow(daemon: DaemonProcess) -> Iterator[None]:
    """A disk that is full to the last byte, for this daemon alone: nothing it writes to any file is taken."""
    assert daemon.process is not None
    pid = daemon.process.pid
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # it has left meanwhile
            resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))


class SmallDisk:
    """A small file system in a mount namespace of its own, which goes with the process that holds it."""

    def __init__(self, size_mb: int) -> None:
        self._place = tempfile.mkdtemp(prefix="hermes-")
        options = f"size={size_mb}m,mode=700"
        if shutil.which("unshare") is None or shutil.which("nsenter") is None:
            self._remove_place()
            pytest.skip("no small file system can be made here (needs unshare and nsenter)")
        script = f'mount -t tmpfs -o {options} none "$0" && echo made && exec cat'
        self._holder = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", script, self._place],
            stdin=subprocess.PIPE,  # it ends with whoever holds the other end
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert self._holder.stdout is not None
        if self._holder.stdout.readline() != b"made\n":
            self.remove()
            pytest.skip("no small file system can be mounted here (needs root)")
        self.prefix = ("nsenter", "-t", str(self._holder.pid), "-m", f"--wd={Path.cwd()}")
        self.path = Path(f"/proc/{self._holder.pid}/root{self._place}")  # as it is seen from outside

    def remove(self) -> None:
        self._holder.communicate()
        self._remove_place()

    def _remove_place(self) -> None:
        Path(self._place).rmdir()

    @contextmanager
    def full(self) -> Iterator[None]:
        filler = self.path / "filler"
        try:
            with filler.open("wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass
        except OSError:
            pass
        try:
            yield
        finally:
            filler.unlink()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        self._remount("ro")
        try:
            yield
        finally:
            self._remount("rw")

    def _remount(self, how: str) -> None:
        subprocess.run([*self.prefix, "mount", "-o", f"remount,{how}", self._place], check=True)


# ---------------------------------------------------------------- calls that fail, and kills in the middle of them


_STRACE: Final = ("strace", "-D", "-f", "-qq", "-o", os.devnull)  # -D: the command stays a child of its own parent


def injected(*faults: str) -> tuple[str, ...]:
    """The command that runs another with these faults in its system calls: `fdatasync:error=EIO:when=3`."""
    if shutil.which("strace") is None or subprocess.run([*_STRACE, "true"], check=False).returncode:
        pytest.skip("no faults can be put into system calls here (needs strace, and leave to trace)")
    calls = ",".join({fault.partition(":")[0] for fault in faults})
    return (*_STRACE, "-e", f"trace={calls}", *(word for fault in faults for word in ("-e", f"inject={fault}")))


def start_if_it_can(daemon: DaemonProcess, prefix: tuple[str, ...]) -> bool:
    try:
        daemon.start(prefix=prefix)
    except AssertionError:
        return False
    return True


def wait_for_end(daemon: DaemonProcess, within_s: float) -> int | None:
    """The exit code of a daemon that leaves by itself; None for one that stays."""
    if daemon.process is None:
        return None
    try:
        code = daemon.process.wait(within_s)
    except subprocess.TimeoutExpired:
        return None
    daemon.kill()  # nothing is left of it but what it has to hand over
    return code


def pause(seconds: float) -> None:
    """Not to wait for anything: so that a fault strikes anywhere."""
    time.sleep(seconds)
