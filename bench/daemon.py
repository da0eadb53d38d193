"""Startup time of the daemon with an empty store, 100,000 sessions and 1,000 open turns, and its idle memory."""

from __future__ import annotations

import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hermes.domain.ids import Epoch, Seq, SessionId, SessionKey, TurnId
from hermes.domain.message import EncodedMessage
from hermes.domain.operations import Append
from hermes.domain.records import SessionStarted
from hermes.domain.session.jobs import ModelReport
from hermes.domain.session.machine import step
from hermes.domain.session.state_fold import begin
from hermes.domain.source import Source
from hermes.domain.submission import Submission
from hermes.domain.usage import Usage
from hermes.ports.storage import Transaction
from hermes.storage.lmdb_engine import LmdbEngine

STORED = 100_000
STARTS = 9
PENDING = 1000
BATCH = 1000


def run() -> dict[str, float]:
    compileall.compile_dir(str(Path(__file__).parent.parent / "hermes"), quiet=1)
    with tempfile.TemporaryDirectory(prefix="hermes-bench-", dir=Path.cwd()) as folder:
        empty, full = Path(folder, "e"), Path(folder, "f")
        full.mkdir(mode=0o700)
        _start(full)  # creates the home
        fill(full / "store", STORED)
        _start(full), _start(empty)  # warms the page cache for both
        pairs = [(_start(empty), _start(full)) for _ in range(STARTS)]
        pending = [_start_with_pending(full, round_) for round_ in range(STARTS // 2)]
    none_s = statistics.median(empty for (empty, _), _ in pairs)
    full_s = statistics.median(full for _, (full, _) in pairs)
    return {
        "ready_empty_s": none_s,
        "ready_100k_s": full_s,
        "ready_100k_to_empty": full_s / none_s,
        "ready_1k_pending_s": statistics.median(pending),
        "idle_rss_mb": max(rss for _, (_, rss) in pairs) / 2**20,
    }


def _start_with_pending(home: Path, round_: int) -> float:
    """Return the startup time after a kill: 1,000 new sessions have an open turn."""
    fill(home / "store", PENDING, first=STORED + round_ * PENDING, pending=True)
    return _start(home)[0]


def _start(home: Path) -> tuple[float, float]:
    """Return the seconds from exec to ready, and the resident bytes afterwards."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("HERMES_")}
    environ |= {"HERMES_HOME": str(home), "HERMES_API_PORT": "0", "HERMES_LOG_LEVEL": "WARNING"}
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "hermes.cli.main", "daemon"], env=environ, stdout=subprocess.PIPE
    ) as daemon:
        assert daemon.stdout is not None
        line = daemon.stdout.readline()
        took = time.perf_counter() - began
        assert b"ready" in line, line
        time.sleep(0.3)  # measure idle memory, after the last steps of the start
        rss = resident_bytes(daemon.pid)
        daemon.terminate()
        daemon.stdout.read()
    return took, rss


def resident_bytes(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def fill(store: Path, sessions: int, *, first: int = 0, pending: bool = False) -> None:
    """Store sessions with one turn each, finished or pending, as the daemon would."""
    engine = LmdbEngine.open(store)
    try:
        for start in range(first, first + sessions, BATCH):
            numbers = range(start, start + BATCH)
            engine.commit([_stored_session(number, engine.epoch, pending=pending) for number in numbers])
    finally:
        engine.close()


def _stored_session(number: int, epoch: Epoch, *, pending: bool) -> Transaction:
    id_ = SessionId(f"20261116_101010_{number:08x}")
    source = Source(platform="api")
    started = SessionStarted(
        at=float(number), key=SessionKey(f"agent:main:api:dm:{id_}"), source=source, reason="first message"
    )
    answer = "Twice half its length."
    said = EncodedMessage(b'{"role":"user","content":"How long is a piece of string, and who wants to know?"}')
    received = step(
        begin(id_, started), Submission(turn=TurnId(f"t{number}"), messages=(said,), source=source), number
    )
    done = step(
        received.session,
        ModelReport(
            turn=TurnId(f"t{number}"), attempt=1, replies=0, text=answer, model="m", finish_reason="stop",
            message=EncodedMessage(f'{{"role":"assistant","content":"{answer}"}}'.encode()),
            usage=Usage(prompt_tokens=12, completion_tokens=5),
        ),
        number + 1,
    )  # fmt: skip
    head = received.session if pending else done.session
    records = (started, *received.records, *(() if pending else done.records))
    return (
        Append(
            session=id_,
            expected_seq=Seq(0),
            epoch=epoch,
            records=records,
            head=head,
            pending=pending,
            bind=head.key,
        ),
    )


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
