"""Throughput of the journal: durable appends of 64 concurrent writers, with group commit and with single commits,
beside LMDB alone.

The store is created in the current directory, because syncs cost nothing on a memory file system.
"""

from __future__ import annotations

import asyncio
import gc
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import lmdb

from hermes.actors.journal import ActorJournal, Backlog
from hermes.domain.errors import HermesError, StorageFailedError
from hermes.domain.ids import Epoch, Seq, SessionId, SessionKey, TurnId
from hermes.domain.operations import Append
from hermes.domain.records import MessageReceived
from hermes.domain.session.state import Phase, Session, Turn
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.ports.storage import Transaction
from hermes.storage.codec import open_record, packer
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.verify import verify

WRITERS = 64
ROUNDS = 7
GROUPED = 200  # appends per writer and round
ALONE = 10
_RECORD_BYTES, _ROW_BYTES = 190, 230  # of the appends, sealed


def run() -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix=".bench-", dir=Path.cwd()) as scratch:
        directory = Path(scratch) / "store"
        engine = LmdbEngine.open(directory)
        try:
            figures = _appends(engine, Path(scratch) / "raw") | _reads(engine)
        finally:
            engine.close()
        began = time.perf_counter()
        problems = verify(directory)
        assert not problems, problems
        return figures | _codec() | {"verify_s": time.perf_counter() - began}


def _appends(engine: LmdbEngine, raw: Path) -> dict[str, float]:
    grouped, alone, cpu_us, batches, bare, bare_cpu_us = [], [], [], [], [], []
    for number in range(ROUNDS):
        rate, _, _ = asyncio.run(_round(engine, f"alone{number}", ALONE, Backlog(batch_transactions=1)))
        alone.append(rate)
        rate, cpu, commits = asyncio.run(_round(engine, f"grouped{number}", GROUPED, Backlog()))
        grouped.append(rate)
        cpu_us.append(cpu * 1e6 / (WRITERS * GROUPED))
        batches.append(WRITERS * GROUPED / commits)
        rate, cpu = _raw_round(raw)
        bare.append(rate)
        bare_cpu_us.append(cpu * 1e6 / (WRITERS * GROUPED))
    return {
        "raw_lmdb_per_s": median(bare),
        "raw_lmdb_cpu_us": median(bare_cpu_us),
        "cpu_to_raw_lmdb": median(ours / raw for ours, raw in zip(cpu_us, bare_cpu_us, strict=True)),
        "appends_per_s_grouped": median(grouped),
        "appends_per_s_one_commit_each": median(alone),
        "ratio": median(a / b for a, b in zip(grouped, alone, strict=True)),
        "transactions_per_commit": median(batches),
        "cpu_us_per_append": median(cpu_us),
    }


async def _round(engine: LmdbEngine, name: str, appends: int, backlog: Backlog) -> tuple[float, float, int]:
    """Return appends per second, CPU seconds of the process, and commits. Each writer waits for its commits."""
    journal = ActorJournal(engine, on_fatal=_fail, backlog=backlog)
    work = [_appends_of(f"{name}_{n:02}", appends, engine.epoch) for n in range(WRITERS)]
    commits = engine.stats().commits
    gc.collect()
    gc.freeze()  # excludes the prepared work from the measurement
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(_write(journal, transactions) for transactions in work))
    elapsed, cpu = time.perf_counter() - began, time.process_time() - cpu
    gc.unfreeze()
    await journal.close()
    return WRITERS * appends / elapsed, cpu, engine.stats().commits - commits


def _raw_round(directory: Path) -> tuple[float, float]:
    """Return the rate and CPU seconds of LMDB alone: as many values of the same sizes, as many in one commit."""
    with lmdb.open(str(directory), map_size=1 << 30, max_dbs=2) as env:
        log, rows = env.open_db(b"log"), env.open_db(b"rows")
        began, cpu = time.perf_counter(), time.process_time()
        for number in range(GROUPED):
            with env.begin(write=True) as txn:
                for writer in range(WRITERS):
                    txn.put(b"%016x" % (number * WRITERS + writer), bytes(_RECORD_BYTES), db=log)
                    txn.put(b"20261116_120000_%08x" % writer, bytes(_ROW_BYTES), db=rows)
        return WRITERS * GROUPED / (time.perf_counter() - began), time.process_time() - cpu


async def _write(journal: ActorJournal, transactions: list[Transaction]) -> None:
    loop = asyncio.get_running_loop()
    for transaction in transactions:
        stored: asyncio.Future[HermesError | None] = loop.create_future()
        journal.commit(transaction, stored.set_result)
        assert await stored is None


def _fail(failure: StorageFailedError) -> None:
    raise failure


def _appends_of(name: str, count: int, epoch: Epoch) -> list[Transaction]:
    """Return appends of one session, as for messages of a person: record, row, recent list and pending list."""
    record = _record()
    head = Session(
        id=SessionId(f"20261116_120000_{name}"),
        key=SessionKey(f"agent:main:api:dm:{name}"),
        phase=Phase.RUNNING,
        reason="a message came in",
        since=record.at,
        created_at=record.at,
        active_at=record.at,
        next_seq=Seq(0),
        platform="api",
        turn=Turn(id=record.turn, accepted_at=record.at),
    )
    return [(_append(head, (record,), seq, epoch),) for seq in range(count)]


def _append(head: Session, records: tuple[MessageReceived], seq: int, epoch: Epoch) -> Append:
    return Append(
        session=head.id,
        expected_seq=Seq(seq),
        epoch=epoch,
        records=records,
        head=replace(head, active_at=head.active_at + seq, next_seq=Seq(seq + 1), messages=seq + 1),
        pending=True,
        bind=head.key if seq == 0 else None,
    )


def _record() -> MessageReceived:
    return MessageReceived(
        at=1.8e9,
        turn=TurnId("turn_0123456789abcdef"),
        messages=(EncodedMessage(b'{"role":"user","content":"How long does it take to store this sentence?"}'),),
        source=Source(platform="api", user="bench"),
    )


def _reads(engine: LmdbEngine) -> dict[str, float]:
    session = SessionId(f"20261116_120000_grouped{ROUNDS - 1}_00")
    return {
        "read_head_us": _us(lambda: engine.head(session)),
        "read_log_of_200_us": _us(lambda: engine.log(session), 20),
        "list_50_recent_us": _us(lambda: engine.recent(50), 20),
    }


def _codec() -> dict[str, float]:
    record, pack = _record(), packer()
    entry = ("20261116_120000_0a1b2c3d", 1, "MessageReceived", record)
    packed = pack(entry)
    return {"encode_us": _us(lambda: pack(entry), 20_000), "decode_us": _us(lambda: open_record(packed), 20_000)}


def _us(work: Callable[[], object], times: int = 1000) -> float:
    began = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - began) / times * 1e6


if __name__ == "__main__":
    print(json.dumps({name: round(value, 2) for name, value in run().items()}, indent=2))
