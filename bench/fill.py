"""Stores of any size, written in bulk through the storage port."""

from __future__ import annotations

from pathlib import Path

from hermes.domain.ids import Epoch, Seq, SessionId, SessionKey, TurnId
from hermes.domain.operations import Append
from hermes.domain.records import Record, SessionStarted
from hermes.domain.session.fold.state_fold import begin
from hermes.domain.session.jobs import ModelReport
from hermes.domain.session.machine import step
from hermes.domain.session.state import Session
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Submission
from hermes.domain.turn.usage import Usage
from hermes.domain.values import replace
from hermes.storage.lmdb_engine import LmdbEngine

BATCH = 5000
_SOURCE = Source(platform="api")
_SAID = EncodedMessage(b'{"role":"user","content":"How long is a piece of string, and who wants to know?"}')
_TEXT = "Twice half its length."


def fill(home: Path, sessions: int, *, first: int = 0, turns: int = 1, pending: bool = False) -> None:
    """Store sessions with that many turns each, the last one finished or `pending`.

    The state machine makes the first session; the others have its records under their own ids, each used one second
    after the one before it.
    """
    home.mkdir(mode=0o700, exist_ok=True)
    engine = LmdbEngine.open(home / "store")
    try:
        records, head = _conversation(turns, pending=pending)
        for start in range(first, first + sessions, BATCH):
            numbers = range(start, min(start + BATCH, first + sessions))
            engine.commit([(_append(number, records, head, engine.epoch),) for number in numbers])
    finally:
        engine.close()


def session_id(number: int) -> SessionId:
    return SessionId(f"20261116_101010_{number:08x}")


def _append(number: int, records: tuple[Record, ...], head: Session, epoch: Epoch) -> Append:
    id_ = session_id(number)
    key = SessionKey(f"agent:main:api:dm:{id_}")
    started = records[0]
    assert isinstance(started, SessionStarted)
    return Append(
        session=id_,
        expected_seq=Seq(0),
        epoch=epoch,
        records=(replace(started, key=key), *records[1:]),
        head=replace(head, id=id_, key=key, active_at=float(number), since=float(number)),
        pending=head.turn is not None,
        bind=key,
    )


def _conversation(turns: int, *, pending: bool) -> tuple[tuple[Record, ...], Session]:
    id_ = session_id(0)
    key = SessionKey(f"agent:main:api:dm:{id_}")
    started = SessionStarted(at=0.0, key=key, source=_SOURCE, reason="first message")
    session = begin(id_, started)
    records: list[Record] = [started]
    for number in range(turns):
        turn = TurnId(f"turn_{number:016x}")
        received = step(session, Submission(turn=turn, messages=(_SAID,), source=_SOURCE), float(number))
        records += received.records
        session = received.session
        if not (pending and number == turns - 1):
            done = step(session, _answer(turn), number + 0.5)
            records += done.records
            session = done.session
    return tuple(records), session


def _answer(turn: TurnId) -> ModelReport:
    return ModelReport(
        turn=turn,
        attempt=1,
        replies=0,
        text=_TEXT,
        model="m",
        finish_reason="stop",
        message=EncodedMessage(f'{{"role":"assistant","content":"{_TEXT}"}}'.encode()),
        usage=Usage(prompt_tokens=12, completion_tokens=5),
    )
