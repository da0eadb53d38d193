"""Bytes of the store change between two lives: flipped in a record, torn off at the end, lost with their page.

Whatever can still be read is there, what cannot is said, no session is lost for another's damage, and the daemon
neither starts with a wrong answer nor dies of one.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.storage.env import DATA_FILE
from tests.crash.machine import EVERY, GONE, wait_for_end
from tests.support.daemon_process import DaemonProcess
from tests.support.scripted_model import ScriptedModel

SEEDS = range(200) if EVERY else range(2)
SESSIONS = ("a", "b", "c")

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def daemon(model: ScriptedModel) -> Iterator[DaemonProcess]:
    """One that was killed after each session had been told its own secret, with a known place in the file."""
    with DaemonProcess(config=model.config) as daemon:
        for session in SESSIONS:
            for turn in range(3):
                assert daemon.ask(f"say secret {session}{turn} {session * 40}", session).status == 200
        daemon.kill()
        yield daemon


def flip(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 0xFF
    file.write_bytes(content)


def places(file: Path, what: bytes) -> list[int]:
    content = file.read_bytes()
    return [n for n in range(len(content)) if content.startswith(what, n)]


def test_a_flipped_byte_costs_one_record_and_no_session(daemon: DaemonProcess, model: ScriptedModel) -> None:
    data = daemon.home / "store" / DATA_FILE
    for at in places(data, b"secret b1 b"):
        flip(data, at)
    daemon.start()
    for session in SESSIONS:
        assert daemon.ask("say once more", session).text == "once more"
        shown = str(model.requests[-1]["messages"])
        assert [f"secret {session}{turn} " in shown for turn in range(3)] == [True, session != "b", True]
    assert '"bad_records": 0' not in daemon.hermes("storage", "stats", "--json").stdout
    assert "Traceback" not in daemon.stderr()
    assert daemon.terminate() == 0


def test_a_file_that_was_torn_off_is_refused_with_what_to_do(daemon: DaemonProcess) -> None:
    data = daemon.home / "store" / DATA_FILE
    used = max(max(places(data, f"secret {session}{turn}".encode())) for session in SESSIONS for turn in range(3))
    os.truncate(data, used // 2 // 4096 * 4096)
    done = daemon.hermes("daemon")
    assert done.returncode == 74
    assert "restore a backup" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("seed", SEEDS)
def test_noise_anywhere_in_the_file_gives_no_wrong_answer(
    daemon: DaemonProcess, model: ScriptedModel, seed: int
) -> None:
    """It starts and answers, or says why not; a session shows what was said in it, or less, and nothing else."""
    chance = random.Random(seed)
    data = daemon.home / "store" / DATA_FILE
    for _ in range(4):
        flip(
            data, chance.randrange(data.stat().st_size // 4)
        )  # where the pages are: behind them there are only zeros
    daemon.begin()
    assert daemon.process is not None
    assert daemon.process.stdout is not None
    ready = daemon.process.stdout.readline().decode()
    if " is ready at " in ready:
        daemon.address = ready.split(" is ready at ")[1].split()[0]
        look_around(daemon, model)
    else:
        assert wait_for_end(daemon, 20) in (74, 78)
        assert "restore a backup" in daemon.stderr() or "damaged" in daemon.stderr()


def look_around(daemon: DaemonProcess, model: ScriptedModel) -> None:
    for session in SESSIONS:
        try:
            answer = daemon.ask("say once more", session)
        except GONE:
            assert wait_for_end(daemon, 20) == 74
            return
        if answer.status == 200:
            said = [m["content"] for m in model.requests[-1]["messages"] if m["role"] == "user"]
            said = [text for text in said if text.startswith("say secret")]
            assert set(said) <= {f"say secret {session}{turn} {session * 40}" for turn in range(3)}
            assert len(said) == len(set(said))
    assert daemon.process is not None
    assert daemon.process.poll() in (None, 74)
