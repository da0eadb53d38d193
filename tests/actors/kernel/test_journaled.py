"""The machine of a journaled actor: persist, apply, act; stash, retry, conflict, load."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from hermes.actors.kernel import journaled
from hermes.actors.kernel.actor import live_actors
from hermes.actors.kernel.journaled import JournaledActor, LifecycleStage, LoadState, Refusal, WriteState, refusal_of
from hermes.domain.errors import (
    BadInputError,
    HermesError,
    SequenceConflictError,
    StorageFailedError,
    StorageFullError,
    UnknownSessionError,
)
from hermes.domain.ids import Epoch
from hermes.ports.storage import Transaction
from tests.support.waiting import until


class HeldJournal:
    """Journal that answers when the test says so."""

    epoch = Epoch(1)
    full = ""
    last_position = 0

    def __init__(self) -> None:
        self.writes: list[Callable[[HermesError | None], None]] = []
        self.reads: list[Callable[[Any, HermesError | None], None]] = []

    def commit(self, transaction: Transaction, then: Callable[[HermesError | None], None]) -> None:
        self.writes.append(then)

    def read(self, query: Callable[[Any], Any], then: Callable[[Any, HermesError | None], None]) -> None:
        self.reads.append(then)

    async def fetch(self, query: Callable[[Any], Any]) -> Any:
        raise NotImplementedError

    async def answer_write(self, error: HermesError | None = None) -> None:
        await until(lambda: bool(self.writes))
        self.writes.pop(0)(error)
        await asyncio.sleep(0)

    async def answer_read(self, found: object, error: HermesError | None = None) -> None:
        await until(lambda: bool(self.reads))
        self.reads.pop(0)(found, error)
        await asyncio.sleep(0)


class Recorder(JournaledActor[str, str]):
    """Writes every word but those that begin with a slash, and records which hooks are called."""

    def __init__(
        self, journal: HeldJournal, stage: LifecycleStage = LifecycleStage.SETTLED, *, goes_on: bool = False
    ) -> None:
        super().__init__(journal, stage)
        self.calls: list[str] = []
        self._goes_on = goes_on

    def handle(self, message: object) -> object:
        match message:
            case "/load":
                self.load(lambda _: "")
            case "/later" if self.load_state is not LoadState.LOADED:
                self.stash(message)
            case "/fail":
                raise RuntimeError("/fail")
            case str() if message.startswith("/"):
                self.calls.append(message)
            case str():
                self.persist(message, message.upper(), ())
            case _:
                return super().handle(message)
        return None

    def is_awaited(self, mail: str) -> bool:
        return mail.endswith("?")

    def on_durable(self, mail: str, step: str) -> None:
        self.calls.append(f"durable {mail} {step}")

    def on_created(self) -> None:
        self.calls.append("created")

    def on_persisted(self, mail: str, step: str) -> None:
        self.calls.append(f"persisted {mail} {step}")

    def on_refused(self, mail: str, error: HermesError) -> None:
        self.calls.append(f"refused {mail} {type(error).__name__}")

    def on_conflict(self, mail: str, error: HermesError) -> bool:
        self.calls.append(f"conflict {mail} {type(error).__name__}")
        return self._goes_on

    def on_loaded(self, found: Any) -> None:
        self.calls.append(f"loaded {found}")

    def on_load_failed(self, error: HermesError) -> None:
        self.calls.append(f"load failed {type(error).__name__}")

    def on_ready(self) -> None:
        self.calls.append("ready")

    def on_end(self) -> None:
        self.calls.append(f"end {self.unfinished_write} {list(self.stashed)}")


def started(stage: LifecycleStage = LifecycleStage.SETTLED, *, goes_on: bool = False) -> tuple[Recorder, HeldJournal]:
    journal = HeldJournal()
    ref = Recorder.start(journal, stage, goes_on=goes_on)
    return next(cast("Recorder", actor) for actor in live_actors() if actor.actor_ref is ref), journal


async def told(actor: Recorder, *words: str) -> None:
    for word in words:
        actor.tell_self(word)
    await until(lambda: not len(actor.actor_inbox))


async def test_effects_follow_the_commit_and_mail_waits_for_them() -> None:
    actor, journal = started()
    await told(actor, "one", "/peek")
    assert actor.write_state is WriteState.WRITING
    assert actor.stashed == ("/peek",)
    assert actor.calls == []
    await journal.answer_write()
    await until(lambda: actor.write_state is WriteState.READY)
    assert actor.calls == ["durable one ONE", "persisted one ONE", "ready", "/peek"]
    actor.stop()


async def test_stashed_mail_is_handled_in_order_one_write_at_a_time() -> None:
    actor, journal = started()
    await told(actor, "one", "two", "three", "/peek")
    for _ in range(3):
        await journal.answer_write()
    await until(lambda: "/peek" in actor.calls)
    assert [call for call in actor.calls if call.startswith(("persisted", "/"))] == [
        "persisted one ONE",
        "persisted two TWO",
        "persisted three THREE",
        "/peek",
    ]
    actor.stop()


async def test_first_commit_settles_a_new_actor() -> None:
    actor, journal = started(LifecycleStage.NEW)
    await told(actor, "one?")
    await journal.answer_write(BadInputError("no"))
    await until(lambda: actor.write_state is WriteState.READY)
    assert actor.stage is LifecycleStage.NEW
    await told(actor, "one")
    await journal.answer_write()
    await until(lambda: actor.stage is LifecycleStage.SETTLED)
    assert actor.calls == [
        "refused one? BadInputError",
        "ready",
        "durable one ONE",
        "created",
        "persisted one ONE",
        "ready",
    ]
    actor.stop()


async def test_recovering_actor_settles_when_told() -> None:
    actor, journal = started(LifecycleStage.RECOVERING)
    await told(actor, "one")
    await journal.answer_write()
    await until(lambda: actor.write_state is WriteState.READY)
    assert actor.stage.name == "RECOVERING"
    actor.settle()
    assert actor.stage.name == "SETTLED"
    actor.stop()


async def test_unawaited_mail_is_retried_when_the_disk_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journaled, "RETRY_WRITE_S", 0.001)
    actor, journal = started()
    await told(actor, "one", "/peek")
    await journal.answer_write(StorageFullError("full"))
    await journal.answer_write()
    await until(lambda: "persisted one ONE" in actor.calls)
    assert actor.calls == ["ready", "/peek", "durable one ONE", "persisted one ONE", "ready"]
    actor.stop()


async def test_failed_store_halts_the_actor_and_keeps_its_stash() -> None:
    actor, journal = started()
    await told(actor, "one", "/peek")
    await journal.answer_write(StorageFailedError("broken"))
    await until(lambda: actor.write_state is WriteState.READY)
    assert actor.calls == []
    assert actor.stashed == ("/peek",)
    actor.stop()


async def test_conflict_stops_the_actor_with_its_stash() -> None:
    actor, journal = started()
    await told(actor, "one", "/peek")
    await journal.answer_write(SequenceConflictError("moved on"))
    await until(lambda: not actor.actor_ref.is_alive())
    assert actor.calls == ["conflict one SequenceConflictError", "end None ['/peek']"]


async def test_actor_that_resolves_a_conflict_goes_on() -> None:
    actor, journal = started(LifecycleStage.NEW, goes_on=True)
    await told(actor, "one", "/peek")
    await journal.answer_write(SequenceConflictError("moved on"))
    await until(lambda: "/peek" in actor.calls)
    assert actor.calls == ["conflict one SequenceConflictError", "ready", "/peek"]
    assert actor.stage is LifecycleStage.NEW
    actor.stop()


async def test_any_other_refusal_of_unawaited_mail_fails_the_actor() -> None:
    actor, journal = started()
    await told(actor, "one")
    await journal.answer_write(BadInputError("no"))
    await until(lambda: not actor.actor_ref.is_alive())
    assert actor.calls == ["end None []"]


async def test_commit_reaches_others_though_the_actor_has_ended() -> None:
    actor, journal = started()
    await told(actor, "one", "/peek")
    actor.stop()
    await until(lambda: not actor.actor_ref.is_alive())
    await journal.answer_write()
    assert actor.calls == ["end one ['/peek']", "durable one ONE"]


async def test_mail_is_handled_and_written_during_a_load() -> None:
    actor, journal = started()
    await told(actor, "/load", "/load", "/later", "one")
    assert actor.load_state.name == "LOADING"
    assert len(journal.reads) == 1
    await journal.answer_write()
    await until(lambda: "persisted one ONE" in actor.calls)
    assert actor.stashed == ("/later",)
    await journal.answer_read("log")
    await until(lambda: "/later" in actor.calls)
    assert actor.load_state.name == "LOADED"
    assert actor.calls[-3:] == ["loaded log", "ready", "/later"]
    actor.stop()


async def test_load_that_ends_during_a_write_waits_with_the_work() -> None:
    actor, journal = started()
    await told(actor, "/load", "one", "/peek")
    await journal.answer_read("log")
    await until(lambda: actor.load_state is LoadState.LOADED)
    assert actor.calls == ["loaded log"]
    await journal.answer_write()
    await until(lambda: "/peek" in actor.calls)
    assert actor.calls[1:] == ["durable one ONE", "persisted one ONE", "ready", "/peek"]
    actor.stop()


async def test_failed_load_can_be_repeated() -> None:
    actor, journal = started()
    await told(actor, "/load")
    await journal.answer_read(None, StorageFailedError("broken"))
    await until(lambda: actor.load_state is LoadState.ABSENT)
    await told(actor, "/load")
    await journal.answer_read("log")
    await until(lambda: actor.load_state is LoadState.LOADED)
    assert actor.calls == ["load failed StorageFailedError", "loaded log", "ready"]
    actor.stop()


async def test_failure_on_stashed_mail_keeps_the_rest_of_it() -> None:
    actor, journal = started()
    await told(actor, "one", "/fail", "/peek")
    await journal.answer_write()
    await until(lambda: not actor.actor_ref.is_alive())
    assert actor.calls[-1] == "end None ['/peek']"


@pytest.mark.parametrize(
    ("error", "awaited", "refusal"),
    [
        (SequenceConflictError("x"), True, Refusal.CONFLICT),
        (UnknownSessionError("x"), False, Refusal.CONFLICT),
        (StorageFullError("x"), True, Refusal.REPLY),
        (StorageFullError("x"), False, Refusal.RETRY),
        (StorageFailedError("x"), True, Refusal.REPLY),
        (StorageFailedError("x"), False, Refusal.HALT),
        (BadInputError("x"), True, Refusal.REPLY),
        (BadInputError("x"), False, Refusal.FAIL),
    ],
)
def test_refusal_depends_on_the_error_and_on_a_waiting_sender(
    error: HermesError, awaited: bool, refusal: Refusal
) -> None:
    assert refusal_of(error, awaited=awaited) is refusal
