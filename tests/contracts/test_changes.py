"""What every Engine promises about the changes of what was learned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.domain.errors import ChangeKnownError, HermesError, SequenceConflictError, StorageError
from hermes.domain.ids import SessionId
from hermes.domain.operations import EraseChanges, Operation
from hermes.ports.storage import Engine
from hermes.storage.lmdb_engine import LmdbEngine
from tests.storage.samples import append, learned
from tests.support.memory_engine import MemoryEngine


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


def test_changes_are_read_back_in_order_by_subject(engine: Engine) -> None:
    for n in range(1, 6):
        stored(engine, learned("memory/a", n), learned("memory/ab", n))
    assert engine.changes("memory/a") == [learned("memory/a", n).change for n in range(1, 6)]
    assert [each.number for each in engine.changes("memory/ab", 1, 3)] == [2, 3, 4]
    assert engine.changes("memory/a", 5) == engine.changes("memory") == engine.changes("memory/a", 0, 0) == []
    assert engine.last_change("memory/a") == learned("memory/a", 5).change
    assert engine.last_change("memory") is None


def test_a_change_with_a_known_operation_id_refuses_its_transaction(engine: Engine) -> None:
    stored(engine, learned("skill/x", 1, operation="call"))
    for number in (1, 2):
        refusal = commit(engine, learned("skill/y", 1), learned("skill/x", number, operation="call"))
        assert isinstance(refusal, ChangeKnownError)
        assert (refusal.subject, refusal.number) == ("skill/x", 1)
    stored(engine, learned("skill/y", 1, operation="call"))
    assert len(engine.changes("skill/x")) == len(engine.changes("skill/y")) == 1
    assert engine.change_of("skill/x", "call") == learned("skill/x", 1, operation="call").change
    assert engine.change_of("skill/x", "other") is engine.change_of("skill", "call") is None


@pytest.mark.parametrize("number", [0, 1, 3])
def test_a_change_that_is_not_the_next_one_is_refused(engine: Engine, number: int) -> None:
    stored(engine, learned("memory/a", 1))
    refused = commit(engine, append("a", 0), learned("memory/a", number, operation="other"))
    assert isinstance(refused, SequenceConflictError)
    assert (len(engine.changes("memory/a")), engine.head(SessionId("a"))) == (1, None)


def test_several_changes_of_a_subject_fit_one_transaction_and_batch(engine: Engine) -> None:
    outcomes = engine.commit(
        [
            (learned("m", 1), learned("m", 2)),
            (learned("m", 3, operation="call-1"),),
            (learned("m", 3), learned("n", 2)),
            (learned("m", 3),),
        ]
    )
    assert [type(each) for each in outcomes] == [type(None), ChangeKnownError, SequenceConflictError, type(None)]
    assert [each.number for each in engine.changes("m")] == [1, 2, 3]
    assert engine.changes("n") == []


def test_subjects_are_listed_by_how_they_begin(engine: Engine) -> None:
    for subject in ("memory/b", "memory/a", "memory/a/b", "memoryless", "skill/é"):
        stored(engine, learned(subject, 1), learned(subject, 2))
    assert engine.change_subjects("memory/") == ["memory/a", "memory/a/b", "memory/b"]
    assert engine.change_subjects("skill") == ["skill/é"]
    assert len(engine.change_subjects("")) == 5
    assert engine.change_subjects("none") == []


def test_the_changes_of_a_subject_are_erased(engine: Engine) -> None:
    stored(engine, learned("memory/a", 1), learned("memory/a", 2), learned("memory/ab", 1))
    assert commit(engine, EraseChanges(subject="memory/a"), append("a", 7)) is not None
    assert len(engine.changes("memory/a")) == 2
    stored(engine, EraseChanges(subject="memory/a"), EraseChanges(subject="never there"))
    assert engine.change_subjects("") == ["memory/ab"]
    assert engine.last_change("memory/a") is engine.change_of("memory/a", "call-1") is None
    stored(engine, learned("memory/a", 1))


@pytest.mark.parametrize("subject", ["", "a" * 201, "a\0b", "\ud800"])
def test_a_subject_that_does_not_fit_is_refused(engine: Engine, subject: str) -> None:
    assert isinstance(commit(engine, learned(subject, 1)), StorageError)


def test_a_change_without_an_operation_id_is_refused_and_any_other_is_kept(engine: Engine) -> None:
    nameless = learned("m", 1)
    nameless = replace(nameless, change=replace(nameless.change, operation=""))
    assert isinstance(commit(engine, nameless), StorageError)
    stored(engine, learned("m", 1, operation="\0" + "x" * 4000, payload=bytes(range(256)) * 4000))
    assert engine.last_change("m") == engine.change_of("m", "\0" + "x" * 4000)
