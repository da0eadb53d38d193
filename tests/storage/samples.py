"""Sessions, records and transactions to store."""

from __future__ import annotations

from hermes.domain.change import Change, ChangeAction, ChangeAuthor
from hermes.domain.ids import Epoch, InboundKey, Seq, SessionId, SessionKey, TurnId
from hermes.domain.operations import Append, AppendChange
from hermes.domain.outbox_message import DeadLetter
from hermes.domain.process.process_record import ProcessRecord
from hermes.domain.records import MessageReceived, Record
from hermes.domain.session.state import Phase, Session
from hermes.domain.source import Source
from hermes.domain.turn.message import EncodedMessage
from hermes.domain.turn.submission import Seen

NOW = 1_800_000_000.0


def message(text: str = "hello", at: float = NOW) -> MessageReceived:
    content = EncodedMessage(f'{{"role":"user","content":"{text}"}}'.encode(errors="replace"))
    return MessageReceived(at=at, turn=TurnId(f"turn-{text[:8]}"), messages=(content,), source=Source(platform="api"))


def head(session: str, next_seq: int, *, active_at: float = NOW, reason: str = "it was said") -> Session:
    return Session(
        id=SessionId(session),
        key=SessionKey(f"key:{session}"),
        phase=Phase.IDLE,
        reason=reason,
        since=active_at,
        created_at=NOW,
        active_at=active_at,
        next_seq=Seq(next_seq),
        platform="api",
    )


def append(
    session: str,
    seq: int,
    *records: Record,
    epoch: int = 1,
    pending: bool = False,
    bind: str | None = None,
    seen: Seen | None = None,
    active_at: float = NOW,
    reason: str = "it was said",
    due: float | None = None,
) -> Append:
    stored = records or (message(f"{session} {seq}"),)
    return Append(
        session=SessionId(session),
        expected_seq=Seq(seq),
        epoch=Epoch(epoch),
        records=stored,
        head=head(session, seq + len(stored), active_at=active_at, reason=reason),
        pending=pending,
        bind=None if bind is None else SessionKey(bind),
        seen=seen,
        due=due,
    )


def seen(key: str, *, session: str = "a", turn: str = "t1", at: float = NOW) -> Seen:
    return Seen(key=InboundKey(key), session=SessionId(session), turn=TurnId(turn), fingerprint=b"\x00\xff", at=at)


def letter(name: str, session: str = "a") -> DeadLetter:
    return DeadLetter(
        id=name,
        session=SessionId(session),
        turn=TurnId("t1"),
        messages=(EncodedMessage(b'{"role":"user","content":"boom"}'),),
        source=Source(platform="api", user="someone"),
        options=b"{}",
        problem="it crashed its session twice",
        at=NOW,
    )


def learned(subject: str, number: int, *, operation: str = "", payload: bytes = b"note") -> AppendChange:
    return AppendChange(
        change=Change(
            subject=subject,
            number=number,
            at=NOW,
            author=ChangeAuthor.AGENT,
            action=ChangeAction.ADD,
            operation=operation or f"call-{number}",
            payload=payload,
            by="telegram:1",
            session="a",
            turn="t1",
        )
    )


def process(name: str) -> ProcessRecord:
    return ProcessRecord(
        id=name,
        root=SessionId("a"),
        session=SessionId("b"),
        key=SessionKey("key:a"),
        platform="api",
        command="make all",
        cwd="/tmp",
        started_at=NOW,
    )
