"""Upgrade with open work: a store that an earlier version left in the middle of two turns.

`mid-turn.mdb.gz` was written by the version before records had causes, and the daemon was killed. It is never written
again. `s-stall` waited for the model, `s-tool` ran `sleep 30`, `s-plain` was idle.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon_process import DaemonProcess
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

STORE = Path(__file__).with_name("mid-turn.mdb.gz")


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel() as model:
        yield model


@pytest.fixture
def daemon(model: ScriptedModel) -> Iterator[DaemonProcess]:
    daemon = DaemonProcess(config=model.config)
    store = daemon.home / "store"
    store.mkdir(mode=0o700)
    (store / "data.mdb").write_bytes(gzip.decompress(STORE.read_bytes()))
    with daemon:
        yield daemon


def _is_idle(daemon: DaemonProcess, session: str) -> bool:
    return bool(daemon.admin.get(f"/sessions/{session}")["session"]["phase"] == "idle")


def test_open_turns_of_an_earlier_version_continue(daemon: DaemonProcess, model: ScriptedModel) -> None:
    eventually(lambda: all(_is_idle(daemon, session) for session in ("s-stall", "s-tool", "s-plain")))
    asked = [str(body["messages"]) for body in model.requests]
    assert sum("STALL please" in each for each in asked) == 1
    [tool] = [each for each in asked if "TOOL please" in each]
    assert "No recorded outcome" in tool  # the command is not run again
    assert daemon.terminate() == 0
    assert "intact" in daemon.hermes("storage", "verify").stdout
