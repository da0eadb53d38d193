"""What every Engine promises, asked of each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.errors import (
    AlreadySeenError,
    HermesError,
    SequenceConflictError,
    StaleOwnerError,
    StorageError,
    UnknownSessionError,
)
from hermes.ports import DropDeadLetter, Engine, Erase, ForgetSeen, Operation, Restore, SetAside
from hermes.records import Ended, LogEntry, TurnStarted
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.memory import MemoryEngine
from hermes.types import Epoch, InboundKey, Seq, SessionId, SessionKey, TurnId
from tests.storage.samples import NOW, append, head, letter, message, seen

A, B = SessionId("a"), SessionId("b")


@pytest.fixture(params=["lmdb", "memory"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    made: Engine = LmdbEngine.open(tmp_path / "store") if request.param == "lmdb" else MemoryEngine()
    yield made
    made.close()


def commit(engine: Engine, *operations: Operation) -> HermesError | None:
    [outcome] = engine.commit([operations])
    return outcome


def stored(engine: Engine, *operations: Operation) -> None:
    assert commit(engine, *operations) is None


def sequence(entries: list[LogEntry]) -> list[int]:
    return [entry.seq for entry in entries]


# ---------------------------------------------------------------- appending and reading back


def test_what_was_appended_is_read_back(engine: Engine) -> None:
    first, second = message("one"), TurnStarted(at=NOW, turn=TurnId("t"), attempt=1)
    stored(engine, append("a", 0, first, second))
    stored(engine, append("a", 2, Ended(at=NOW, reason="done"), reason="done"))
    assert engine.head(A) == head("a", 3, reason="done")
    assert [entry.record for entry in engine.log(A)] == [first, second, Ended(at=NOW, reason="done")]


def test_an_unknown_session_has_no_head_and_no_log(engine: Engine) -> None:
    assert engine.head(A) is None
    assert engine.log(A) == []
    assert engine.salvage(A) == []


def test_a_row_can_change_without_a_record(engine: Engine) -> None:
    stored(engine, append("a", 0))
    changed = replace(append("a", 1), records=(), head=head("a", 1, reason="another"))
    stored(engine, changed)
    assert engine.head(A) == changed.head
    assert len(engine.log(A)) == 1


@pytest.mark.parametrize("size", [31, 32, 33, 64, 100])
def test_a_log_of_any_length_is_read_back_in_order(engine: Engine, size: int) -> None:
    texts = [f"text {n}" for n in range(size)]
    stored(engine, append("a", 0, message(texts[0])))
    for n, text in enumerate(texts[1:], 1):
        stored(engine, append("a", n, message(text)), append("b", n - 1))
    assert [entry.record for entry in engine.log(A)] == [message(text) for text in texts]
    assert sequence(engine.log(A)) == list(range(size))
    assert engine.salvage(A) == engine.log(A)


def test_many_records_fit_one_append(engine: Engine) -> None:
    stored(engine, append("a", 0, *(message(str(n)) for n in range(70))))
    stored(engine, append("a", 70))
    assert sequence(engine.log(A)) == list(range(71))


@pytest.mark.parametrize(
    ("first", "limit", "expected"),
    [
        (0, 3, [0, 1, 2]),
        (30, 4, [30, 31, 32, 33]),
        (64, None, list(range(64, 70))),
        (69, 10, [69]),
        (70, 5, []),
        (0, 0, []),
    ],
)
def test_a_log_is_read_in_pages(engine: Engine, first: int, limit: int | None, expected: list[int]) -> None:
    stored(engine, append("a", 0, *(message(str(n)) for n in range(70))))
    assert sequence(engine.log(A, Seq(first), limit)) == expected


def test_any_text_is_kept_as_it_is(engine: Engine) -> None:
    text = "héllo 你好 🙂 \x00 \u202e \u200b \r\n"
    stored(engine, append("a", 0, Ended(at=NOW, reason=text), reason=text, bind=text))
    assert engine.log(A)[0].record == Ended(at=NOW, reason=text)
    assert engine.bound(SessionKey(text)) == A


def test_a_large_message_is_kept(engine: Engine) -> None:
    large = message("x" * 3_000_000)
    stored(engine, append("a", 0, large))
    assert engine.log(A)[0].record == large


# ---------------------------------------------------------------- refusals


def test_a_wrong_sequence_is_refused(engine: Engine) -> None:
    stored(engine, append("a", 0))
    assert isinstance(commit(engine, append("a", 0)), SequenceConflictError)
    assert isinstance(commit(engine, append("a", 2)), SequenceConflictError)
    assert len(engine.log(A)) == 1


def test_an_append_to_a_session_that_is_gone_is_refused(engine: Engine) -> None:
    assert isinstance(commit(engine, append("a", 3)), UnknownSessionError)


def test_an_older_owner_is_refused_and_a_newer_one_takes_over(engine: Engine) -> None:
    stored(engine, append("a", 0, epoch=2))
    assert isinstance(commit(engine, append("a", 1, epoch=1)), StaleOwnerError)
    stored(engine, append("a", 1, epoch=3))
    assert isinstance(commit(engine, append("a", 2, epoch=2)), StaleOwnerError)


def test_a_head_that_does_not_fit_its_records_is_refused(engine: Engine) -> None:
    assert isinstance(commit(engine, replace(append("a", 0), head=head("a", 5))), StorageError)
    assert isinstance(commit(engine, replace(append("a", 0), head=head("b", 1))), StorageError)
    assert engine.head(A) is None


def test_a_refused_transaction_leaves_no_trace_and_spares_the_others(engine: Engine) -> None:
    refused = (
        append("b", 0, pending=True, bind="b-key", seen=seen("update:2")),
        SetAside(letter=letter("l1")),
        append("a", 7),
    )
    outcomes = engine.commit([(append("a", 0),), refused, (append("a", 1),)])
    assert [type(outcome) for outcome in outcomes] == [type(None), SequenceConflictError, type(None)]
    assert len(engine.log(A)) == 2
    assert engine.head(B) is None
    assert engine.log(B) == engine.salvage(B) == []
    assert engine.bound(SessionKey("b-key")) is None
    assert engine.seen(InboundKey("update:2")) is None
    assert (engine.pending(), engine.dead_letters()) == ([], [])
    assert [session.id for session in engine.recent(10)] == [A]
    stored(engine, append("b", 0))


def test_a_refused_erasure_restores_everything(engine: Engine) -> None:
    stored(engine, append("a", 0, *(message(str(n)) for n in range(40)), bind="k", pending=True))
    before = engine.log(A)
    assert isinstance(commit(engine, Erase(session=A), append("b", 9)), UnknownSessionError)
    assert (engine.log(A), engine.bound(SessionKey("k")), engine.pending()) == (before, A, [A])


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_half_a_surrogate_is_refused_and_poisons_nothing_else(engine: Engine, text: str) -> None:
    outcomes = engine.commit(
        [
            (append("a", 0),),
            (append("b", 0, Ended(at=NOW, reason=text)),),
            (append("b", 0, reason=text),),
            (append("b", 0, bind=text),),
            (append("b", 0, seen=seen(text)),),
            (append(text, 0),),
            (SetAside(letter=letter(text)),),
            (append("a", 1),),
        ]
    )
    assert [isinstance(outcome, StorageError) for outcome in outcomes] == [False, *[True] * 6, False]
    assert len(engine.log(A)) == 2
    assert engine.head(B) is None


@pytest.mark.parametrize("bad", [2**64, -(2**63) - 1, object(), {1, 2}])
def test_what_has_no_encoding_is_refused_and_poisons_nothing_else(engine: Engine, bad: int) -> None:
    record = TurnStarted(at=NOW, turn=TurnId("t"), attempt=bad)
    outcomes = engine.commit([(append("a", 0),), (append("b", 0, record),), (append("a", 1),)])
    assert [isinstance(outcome, StorageError) for outcome in outcomes] == [False, True, False]
    assert engine.head(B) is None


@pytest.mark.parametrize("at", [float("nan"), float("inf"), -1e300, 1e300])
def test_a_time_that_is_none_is_refused(engine: Engine, at: float) -> None:
    assert isinstance(commit(engine, append("a", 0, active_at=at)), StorageError)
    assert engine.head(A) is None


@pytest.mark.parametrize("name", ["", "x" * 201, "nul\0inside"])
def test_a_session_id_that_cannot_be_a_key_is_refused(engine: Engine, name: str) -> None:
    assert isinstance(commit(engine, append(name, 0)), StorageError)
    stored(engine, append("x" * 200, 0))


# ---------------------------------------------------------------- seen once


def test_an_inbound_id_is_accepted_once(engine: Engine) -> None:
    first = seen("telegram:7", turn="t1")
    stored(engine, append("a", 0, seen=first))
    refusal = commit(engine, append("a", 1, seen=seen("telegram:7", turn="t2")))
    assert isinstance(refusal, AlreadySeenError)
    assert refusal.seen == first == engine.seen(InboundKey("telegram:7"))
    assert len(engine.log(A)) == 1


def test_an_inbound_id_is_accepted_once_within_one_batch(engine: Engine) -> None:
    twice = [(append("a", 0, seen=seen("slack:1")),), (append("b", 0, seen=seen("slack:1", session="b")),)]
    accepted, refused = engine.commit(twice)
    assert accepted is None
    assert isinstance(refused, AlreadySeenError)
    assert engine.head(B) is None


def test_long_inbound_ids_and_keys_are_told_apart(engine: Engine) -> None:
    long = "k" * 5000
    stored(engine, append("a", 0, seen=seen(long + "1"), bind=long + "1"))
    stored(engine, append("b", 0, seen=seen(long + "2", session="b"), bind=long + "2"))
    assert (engine.bound(SessionKey(long + "1")), engine.bound(SessionKey(long + "2"))) == (A, B)
    assert isinstance(commit(engine, append("a", 1, seen=seen(long + "1"))), AlreadySeenError)


def test_old_inbound_ids_are_forgotten_a_few_at_a_time(engine: Engine) -> None:
    for n in range(10):
        stored(engine, append("a", n, seen=seen(f"id:{n}", at=NOW + n)))
    forget = ForgetSeen(before=NOW + 5, limit=4)
    stored(engine, forget)
    assert sum(engine.seen(InboundKey(f"id:{n}")) is None for n in range(10)) == 4
    stored(engine, forget)
    stored(engine, forget)
    assert [n for n in range(10) if engine.seen(InboundKey(f"id:{n}"))] == [5, 6, 7, 8, 9]
    stored(engine, ForgetSeen(before=NOW + 99, limit=100))
    assert not any(engine.seen(InboundKey(f"id:{n}")) for n in range(10))
    stored(engine, append("a", 10, seen=seen("id:0")))


# ---------------------------------------------------------------- keys, pending, recent


def test_a_key_means_the_session_it_was_last_bound_to(engine: Engine) -> None:
    assert engine.bound(SessionKey("chat")) is None
    stored(engine, append("a", 0, bind="chat"))
    assert engine.bound(SessionKey("chat")) == A
    stored(engine, append("b", 0, bind="chat"))
    assert engine.bound(SessionKey("chat")) == B
    stored(engine, Erase(session=A))
    assert engine.bound(SessionKey("chat")) == B


def test_pending_follows_the_last_append(engine: Engine) -> None:
    stored(engine, append("b", 0, pending=True), append("a", 0, pending=True), append("c", 0))
    assert engine.pending() == [A, B]
    stored(engine, append("a", 1, pending=True), append("b", 1, pending=False))
    assert engine.pending() == [A]


def test_recent_lists_the_last_active_first_in_pages(engine: Engine) -> None:
    order = ["d", "a", "c", "b", "e"]
    for n, name in enumerate(reversed(order)):
        stored(engine, append(name, 0, active_at=NOW + n / 1000))
    assert [session.id for session in engine.recent(99)] == order
    assert [session.id for session in engine.recent(2)] == order[:2]
    assert [session.id for session in engine.recent(2, SessionId("a"))] == order[2:4]
    assert engine.recent(2, SessionId("e")) == []


def test_recent_moves_a_session_up_when_it_is_active(engine: Engine) -> None:
    stored(engine, append("a", 0, active_at=NOW), append("b", 0, active_at=NOW + 1))
    stored(engine, append("a", 1, active_at=NOW + 2))
    assert [session.id for session in engine.recent(9)] == [A, B]
    stored(engine, append("b", 1, active_at=NOW + 1, reason="no person wrote"))
    assert [session.id for session in engine.recent(9)] == [A, B]


def test_sessions_active_at_the_same_moment_are_all_listed(engine: Engine) -> None:
    names = [f"s{n}" for n in range(7)]
    stored(engine, *(append(name, 0) for name in names))
    paged: list[str] = []
    while page := engine.recent(3, SessionId(paged[-1]) if paged else None):
        paged += [session.id for session in page]
    assert sorted(paged) == names


def test_recent_after_a_session_that_is_gone_says_so(engine: Engine) -> None:
    with pytest.raises(UnknownSessionError):
        engine.recent(5, SessionId("gone"))


# ---------------------------------------------------------------- transactions of several operations


def test_a_session_and_its_successor_change_together(engine: Engine) -> None:
    stored(engine, append("a", 0, bind="chat", pending=True))
    stored(engine, append("a", 1, Ended(at=NOW, reason="compression")), append("b", 0, bind="chat", pending=True))
    assert engine.bound(SessionKey("chat")) == B
    assert engine.pending() == [B]


def test_an_operation_sees_what_went_before_it_in_its_transaction(engine: Engine) -> None:
    stored(engine, append("a", 0), append("a", 1), append("b", 0, bind="k", pending=True), Erase(session=B))
    assert len(engine.log(A)) == 2
    assert engine.head(B) is None
    assert engine.bound(SessionKey("k")) is None
    assert (engine.pending(), len(engine.recent(9))) == ([], 1)
    stored(engine, append("b", 0))


# ---------------------------------------------------------------- erasing


def test_an_erased_session_is_gone_from_everywhere_and_nothing_else_is(engine: Engine) -> None:
    for name in ("a", "ab", "b"):
        stored(engine, append(name, 0, *(message(str(n)) for n in range(40)), bind=f"k-{name}", pending=True))
    stored(engine, append("a", 40, bind="another key"))
    before = (engine.log(B), engine.log(SessionId("ab")))
    stored(engine, Erase(session=A))
    assert engine.head(A) is None
    assert engine.log(A) == engine.salvage(A) == []
    assert engine.bound(SessionKey("k-a")) is engine.bound(SessionKey("another key")) is None
    assert engine.pending() == ["ab", "b"]
    assert sorted(session.id for session in engine.recent(9)) == ["ab", "b"]
    assert (engine.log(B), engine.log(SessionId("ab"))) == before
    assert engine.stats().records == 80


def test_an_erased_session_can_start_anew_but_its_inbound_ids_stay_seen(engine: Engine) -> None:
    stored(engine, append("a", 0, seen=seen("id:1")))
    stored(engine, Erase(session=A))
    assert isinstance(commit(engine, Erase(session=A)), UnknownSessionError)
    assert isinstance(commit(engine, append("a", 0, seen=seen("id:1"))), AlreadySeenError)
    stored(engine, append("a", 0, message("anew")))
    assert [entry.record for entry in engine.log(A)] == [message("anew")]


# ---------------------------------------------------------------- dead letters, restoring, figures


def test_dead_letters_are_kept_until_they_are_dropped(engine: Engine) -> None:
    stored(engine, SetAside(letter=letter("l2")), SetAside(letter=letter("l1")))
    assert engine.dead_letters() == [letter("l1"), letter("l2")]
    stored(engine, DropDeadLetter(id="l1"))
    assert engine.dead_letters() == [letter("l2")]


def test_a_dead_letter_is_replayed_once(engine: Engine) -> None:
    stored(engine, SetAside(letter=letter("l1")))
    replay = [(append("a", 0), DropDeadLetter(id="l1")), (append("b", 0), DropDeadLetter(id="l1"))]
    assert [type(outcome) for outcome in engine.commit(replay)] == [type(None), StorageError]
    assert engine.head(B) is None


def test_a_row_is_restored_from_its_log(engine: Engine) -> None:
    stored(engine, append("a", 0, *(message(str(n)) for n in range(40)), pending=True), append("b", 0))
    again = head("a", 40, active_at=NOW + 5, reason="restored")
    stored(engine, Restore(head=again, epoch=Epoch(2), pending=False))
    assert engine.head(A) == again
    assert sequence(engine.log(A)) == list(range(40))
    assert (engine.pending(), [session.id for session in engine.recent(9)]) == ([], [A, B])
    assert isinstance(commit(engine, append("a", 40, epoch=1)), StaleOwnerError)
    stored(engine, append("a", 40, epoch=2))


def test_a_restored_row_must_fit_its_log(engine: Engine) -> None:
    stored(engine, append("a", 0, epoch=2))
    assert isinstance(commit(engine, Restore(head=head("b", 1), epoch=Epoch(2), pending=False)), UnknownSessionError)
    assert isinstance(
        commit(engine, Restore(head=head("a", 2), epoch=Epoch(2), pending=False)), SequenceConflictError
    )
    assert isinstance(commit(engine, Restore(head=head("a", 1), epoch=Epoch(1), pending=False)), StaleOwnerError)


def test_the_figures_add_up(engine: Engine) -> None:
    engine.commit(
        [(append("a", 0, pending=True),), (append("b", 0), SetAside(letter=letter("l"))), (append("a", 9),)]
    )
    stats = engine.stats()
    assert (stats.sessions, stats.records, stats.pending, stats.dead_letters) == (2, 2, 1, 1)
    assert (stats.commits, stats.transactions, stats.bad_records) == (1, 3, 0)


def test_an_empty_batch_is_nothing(engine: Engine) -> None:
    assert engine.commit([]) == []
