"""What every Engine promises, asked of each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.domain.errors import (
    AlreadySeenError,
    HermesError,
    SequenceConflictError,
    StaleOwnerError,
    StorageError,
    UnknownSessionError,
)
from hermes.domain.ids import Epoch, InboundKey, Seq, SessionId, SessionKey, TurnId
from hermes.domain.operations import (
    DropDeadLetter,
    DropProcess,
    Erase,
    ForgetSeen,
    MarkDelivered,
    Operation,
    PutFact,
    PutProcess,
    Restore,
    SetAside,
    SetDue,
    Tally,
)
from hermes.domain.outbox_message import DeliveredMessage, OutboxKind
from hermes.domain.records import Ended, LogEntry, Record, TurnStarted
from hermes.domain.source import Place
from hermes.domain.turn.usage import Usage
from hermes.ports.storage import Engine
from hermes.storage.lmdb_engine import LmdbEngine
from tests.storage.samples import NOW, append, head, letter, message, process, seen
from tests.support.memory_engine import MemoryEngine

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


def test_long_inbound_ids_and_keys_stay_distinct(engine: Engine) -> None:
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


def test_recent_continues_at_a_place_although_its_session_has_moved(engine: Engine) -> None:
    stored(engine, *(append(name, 0, active_at=NOW + n) for n, name in enumerate("abc")))
    place = (NOW + 1, B)
    stored(engine, append("b", 1, active_at=NOW + 9))
    assert [session.id for session in engine.recent(9, place)] == [A]
    stored(engine, Erase(session=B))
    assert [session.id for session in engine.recent(9, place)] == [A]


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


def test_what_has_moved_on_is_not_erased(engine: Engine) -> None:
    stored(engine, append("a", 0), append("a", 1))
    assert isinstance(commit(engine, Erase(session=A, expected_seq=Seq(1))), SequenceConflictError)
    assert len(engine.log(A)) == 2
    stored(engine, Erase(session=A, expected_seq=Seq(2)))
    assert engine.head(A) is None


def test_erased_session_can_restart_but_keeps_its_inbound_ids(engine: Engine) -> None:
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


# ---------------------------------------------------------------- who must be looked at, and when


def test_sessions_are_found_at_the_time_at_which_somebody_must_look_at_them(engine: Engine) -> None:
    stored(engine, append("a", 0, due=NOW + 20.25), append("b", 0, due=NOW + 10), append("c", 0))
    assert engine.due(NOW + 9.9, 10) == []
    assert engine.due(NOW + 10, 10) == [(NOW + 10, B)]
    assert engine.due(NOW + 99, 10) == [(NOW + 10, B), (NOW + 20.25, A)]
    assert engine.due(NOW + 99, 1) == [(NOW + 10, B)]
    assert engine.due(NOW + 99, 1, after=(NOW + 10, B)) == [(NOW + 20.25, A)]
    assert (engine.due_at(A), engine.due_at(SessionId("c")), engine.due_at(SessionId("x"))) == (
        NOW + 20.25,
        None,
        None,
    )


def test_many_due_sessions_are_read_in_pages(engine: Engine) -> None:
    stored(engine, *(append(f"s{n}", 0, due=NOW + 1 / 3) for n in range(7)))
    pages, after = [], None
    while page := engine.due(NOW + 1, 3, after):
        pages.append([session for _, session in page])
        after = page[-1]
    assert pages == [["s0", "s1", "s2"], ["s3", "s4", "s5"], ["s6"]]


def test_each_append_says_anew_when_to_look(engine: Engine) -> None:
    stored(engine, append("a", 0, due=NOW + 1))
    stored(engine, append("a", 1, due=NOW + 2))
    assert engine.due(NOW + 9, 9) == [(NOW + 2, A)]
    stored(engine, append("a", 2, due=NOW + 2), append("a", 3))
    assert engine.due(NOW + 9, 9) == []


def test_the_time_can_be_changed_without_a_record_unless_the_session_has_moved_on(engine: Engine) -> None:
    stored(engine, append("a", 0, due=NOW + 1), append("b", 0))
    stored(engine, SetDue(session=A, expected_seq=Seq(1), due=NOW + 5))
    stored(engine, SetDue(session=B, expected_seq=Seq(1), due=NOW + 3))
    assert engine.due(NOW + 9, 9) == [(NOW + 3, B), (NOW + 5, A)]
    stored(engine, SetDue(session=B, expected_seq=Seq(1), due=None))
    assert isinstance(commit(engine, SetDue(session=A, expected_seq=Seq(0), due=None)), SequenceConflictError)
    assert isinstance(
        commit(engine, SetDue(session=SessionId("x"), expected_seq=Seq(0), due=1.0)), UnknownSessionError
    )
    assert engine.due(NOW + 9, 9) == [(NOW + 5, A)]
    stored(engine, append("a", 1, due=NOW + 5))


def test_a_refused_or_erased_session_is_not_due(engine: Engine) -> None:
    assert isinstance(commit(engine, append("a", 0, due=NOW), append("b", 3)), UnknownSessionError)
    assert engine.due(NOW, 9) == []
    stored(engine, append("a", 0, due=NOW))
    stored(engine, Restore(head=head("a", 1), epoch=Epoch(1), pending=False, due=NOW + 1))
    assert engine.due(NOW + 9, 9) == [(NOW + 1, A)]
    stored(engine, Erase(session=A))
    assert engine.due(NOW + 9, 9) == []


@pytest.mark.parametrize("due", [float("nan"), float("inf"), -1.0, 1e300])
def test_a_time_to_look_that_is_none_is_refused(engine: Engine, due: float) -> None:
    assert isinstance(commit(engine, append("a", 0, due=due)), StorageError)
    assert engine.head(A) is None


# ---------------------------------------------------------------- the books


def used(tokens: int, *, day: str = "2027-01-15", model: str = "m", platform: str = "api") -> Tally:
    usage = Usage(prompt_tokens=tokens, completion_tokens=1, cached_tokens=2, cost_usd=0.25)
    return Tally(day=day, model=model, platform=platform, usage=usage, turns=1)


def test_what_was_used_adds_up_by_day_model_and_platform(engine: Engine) -> None:
    stored(engine, used(3), used(4), append("a", 0))
    stored(engine, used(5))
    stored(engine, used(1, model="n"), used(1, platform="cli"), used(1, day="2027-01-16"))
    whole = Usage(prompt_tokens=12, completion_tokens=3, cached_tokens=6, cost_usd=0.75)
    by_name = {(tally.day, tally.model, tally.platform): tally for tally in engine.tallies("2027-01-15")}
    assert len(by_name) == 4
    assert by_name["2027-01-15", "m", "api"] == replace(used(0), usage=whole, turns=3)


def test_the_books_are_read_from_a_day_on_oldest_first(engine: Engine) -> None:
    days = ["2027-01-15", "2026-12-31", "2027-02-01"]
    for day in days:
        stored(engine, used(1, day=day))
    assert [tally.day for tally in engine.tallies("2026-01-01")] == sorted(days)
    assert [tally.day for tally in engine.tallies("2027-01-01")] == ["2027-01-15", "2027-02-01"]
    assert engine.tallies("2028-01-01") == []


def test_a_refused_transaction_books_nothing(engine: Engine) -> None:
    stored(engine, used(1))
    assert commit(engine, used(5), append("a", 7)) is not None
    assert [tally.usage.prompt_tokens for tally in engine.tallies("")] == [1]


def test_erasing_a_session_leaves_the_books_alone(engine: Engine) -> None:
    stored(engine, append("a", 0), used(1))
    stored(engine, Erase(session=A))
    assert len(engine.tallies("")) == 1


@pytest.mark.parametrize("model", ["", "a/b:c", "模型", "x" * 80])
def test_a_model_of_any_name_is_booked(engine: Engine, model: str) -> None:
    stored(engine, used(1, model=model), used(2, model=model))
    assert [(tally.model, tally.turns) for tally in engine.tallies("")] == [(model, 2)]


# ---------------------------------------------------------------- background processes


def test_a_process_is_kept_as_it_was_last_put_until_it_is_dropped(engine: Engine) -> None:
    stored(engine, PutProcess(record=process("proc_b")), PutProcess(record=process("proc_a")))
    assert engine.processes() == [process("proc_a"), process("proc_b")]
    ended = replace(process("proc_a"), ended_at=NOW + 5, exit_code=3, told=True, watch=("ready", "ERROR"))
    stored(engine, PutProcess(record=ended))
    assert engine.processes() == [ended, process("proc_b")]
    stored(engine, DropProcess(id="proc_a"), DropProcess(id="never there"))
    assert engine.processes() == [process("proc_b")]


def test_a_refused_transaction_leaves_the_processes_as_they_were(engine: Engine) -> None:
    stored(engine, PutProcess(record=process("proc_a")))
    refused = (PutProcess(record=process("proc_b")), DropProcess(id="proc_a"), append("a", 7))
    assert commit(engine, *refused) is not None
    assert engine.processes() == [process("proc_a")]


# ---------------------------------------------------------------- facts


def test_a_fact_is_remembered_replaced_and_forgotten(engine: Engine) -> None:
    assert engine.fact("grant:rm") is None
    stored(engine, PutFact(name="grant:rm", value=b"1"))
    assert engine.fact("grant:rm") == b"1"
    stored(engine, PutFact(name="grant:rm", value=b"\x00\xff"))
    assert engine.fact("grant:rm") == b"\x00\xff"
    stored(engine, PutFact(name="grant:rm", value=None))
    stored(engine, PutFact(name="never there", value=None))
    assert engine.fact("grant:rm") is None
    stored(engine, PutFact(name="empty", value=b""))
    assert engine.fact("empty") == b""


def test_facts_are_listed_by_how_they_begin(engine: Engine) -> None:
    for name in ("grant:rm", "grant:sudo " + "x" * 3000, "grants", "other", "grant:é"):
        stored(engine, PutFact(name=name, value=b"1"))
    assert engine.facts("grant:") == sorted(["grant:rm", "grant:sudo " + "x" * 3000, "grant:é"])
    assert len(engine.facts("")) == 5
    assert engine.facts("none") == []


def test_a_refused_transaction_remembers_and_forgets_nothing(engine: Engine) -> None:
    stored(engine, PutFact(name="kept", value=b"1"))
    refused = (PutFact(name="new", value=b"1"), PutFact(name="kept", value=None), append("a", 7))
    assert commit(engine, *refused) is not None
    assert engine.facts("") == ["kept"]


def test_a_fact_goes_with_the_records_it_came_from(engine: Engine) -> None:
    stored(engine, append("a", 0), PutFact(name="grant:rm", value=b"1"))
    assert (len(engine.log(A)), engine.fact("grant:rm")) == (1, b"1")


# ---------------------------------------------------------------- the tail


def test_the_tail_is_every_sessions_records_in_the_order_they_were_written(engine: Engine) -> None:
    stored(engine, append("b", 0, message("1"), message("2")))
    stored(engine, append("a", 0, message("3")), append("b", 2, message("4")))
    told = engine.tail(-1, 100)
    assert [(session, seq, record) for _, session, seq, record in told] == [
        (B, 0, message("1")),
        (B, 1, message("2")),
        (A, 0, message("3")),
        (B, 2, message("4")),
    ]
    positions = [position for position, *_ in told]
    assert positions == sorted(set(positions))


def test_the_tail_is_read_on_from_where_it_was_left(engine: Engine) -> None:
    for n in range(7):
        stored(engine, append("a", n, message(str(n))))
    texts: list[Record] = []
    after = -1
    while page := engine.tail(after, 3):
        assert len(page) <= 3
        texts += [record for *_, record in page]
        after = page[-1][0]
    assert texts == [message(str(n)) for n in range(7)]
    assert engine.tail(after, 3) == []
    stored(engine, append("a", 7, message("new")))
    assert [record for *_, record in engine.tail(after, 3)] == [message("new")]


def test_last_position_is_that_of_the_newest_record(engine: Engine) -> None:
    assert engine.last_position() == 0
    stored(engine, append("a", 0), append("b", 0, message("1"), message("2")))
    assert engine.last_position() == engine.tail(-1, 100)[-1][0]


def test_the_tail_leaves_out_what_was_refused_or_erased(engine: Engine) -> None:
    stored(engine, append("a", 0))
    engine.commit([(append("b", 0), append("a", 9)), (append("b", 0, message("kept")),)])
    stored(engine, Erase(session=A))
    assert [session for _, session, *_ in engine.tail(-1, 100)] == [B]


# ---------------------------------------------------------------- all together


def test_the_figures_add_up(engine: Engine) -> None:
    engine.commit(
        [(append("a", 0, pending=True),), (append("b", 0), SetAside(letter=letter("l"))), (append("a", 9),)]
    )
    stats = engine.stats()
    assert (stats.sessions, stats.records, stats.pending, stats.dead_letters) == (2, 2, 1, 1)
    assert (stats.commits, stats.transactions, stats.bad_records) == (1, 3, 0)


def test_an_empty_batch_is_nothing(engine: Engine) -> None:
    assert engine.commit([]) == []


# ---------------------------------------------------------------- what was said


def test_what_was_sent_is_found_by_the_platforms_id_of_a_message(engine: Engine) -> None:
    def sent(name: str, at: float, *messages: str) -> MarkDelivered:
        place = Place(platform="toy", chat=name)
        return MarkDelivered(
            sent=DeliveredMessage(id=name, kind=OutboxKind.REPLY, place=place, at=at, sent_at=at, messages=messages)
        )

    stored(engine, sent("late", 9.0, "m1"), sent("early", 1.0, "m0", "m1"), sent("other", 5.0, "m10"))
    assert [each.id for each in engine.sent_with("m1")] == ["early", "late"]
    assert engine.sent_with("m") == []
