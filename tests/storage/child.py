"""A process of its own with a store open, for what would harm the tests: kills, full disks, failing disks."""

from __future__ import annotations

import json
import os
import random
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hermes.domain.errors import HermesError, StorageFailedError, StorageFullError
from hermes.domain.ids import SessionId, SessionKey
from hermes.domain.operations import Erase, PutFact
from hermes.storage.lmdb_engine import LmdbEngine
from tests.storage.samples import append, message

A, B = SessionId("a"), SessionId("b")


def write_for_ever(directory: Path) -> None:
    """Say each number once it is stored."""
    engine = LmdbEngine.open(directory)
    number = len(engine.log(A))
    while True:
        texts = [message(f"number {n}") for n in range(number, number + 1 + number % 7)]
        other = append(f"s{number}", 0, message("x" * (number * 37 % 9000)), pending=number % 3 == 0)
        outcomes = engine.commit([(append("a", number, *texts, epoch=engine.epoch),), (other,)])
        assert outcomes == [None, None]
        number += len(texts)
        sys.stdout.write(f"{number}\n")
        sys.stdout.flush()


def fill_a_small_disk(directory: Path) -> None:
    """On a file system of 64 MiB."""
    filler = directory / "filler"

    def fill() -> None:
        with filler.open("ab", buffering=0) as file:
            for size in (2**20, 4096):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:
                    continue

    store = directory / "store"
    engine = LmdbEngine.open(store)
    report: dict[str, object] = {"reserve_at_first": (store / "reserve").exists()}
    report |= full_and_back(engine, fill, filler.unlink)
    report["reserve_at_last"] = (store / "reserve").exists()
    engine.close()
    say(report)


def reach_a_limit(directory: Path, room: str) -> None:
    """Files must not grow: what a full disk looks like where none can be mounted."""
    data = directory / "data.mdb"
    engine = LmdbEngine.open(directory)
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (data.stat().st_size + int(room), unlimited[1]))

    report = full_and_back(engine, limit, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, unlimited))
    engine.close()
    say(report)


def reach_the_end_of_the_address_space(directory: Path) -> None:
    """The map is full and there is no place for a larger one."""
    engine = LmdbEngine.open(directory, map_size_bytes=64 << 20)
    unlimited = resource.getrlimit(resource.RLIMIT_AS)
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmSize")]
    resource.setrlimit(resource.RLIMIT_AS, ((int(line.split()[1]) << 10) + (40 << 20), unlimited[1]))
    stored = 0
    with suppress(StorageFullError):
        while stored < 200:
            assert engine.commit([(PutFact(name=f"fact {stored}", value=bytes(500_000)),)]) == [None]
            stored += 1
    report: dict[str, object] = {"stored": stored, "readable": engine.fact(f"fact {stored - 1}") == bytes(500_000)}
    again = (PutFact(name="another", value=bytes(500_000)),)
    report["refused"] = outcomes(engine, again)
    resource.setrlimit(resource.RLIMIT_AS, unlimited)
    report["after"] = outcomes(engine, again)
    engine.close()
    say(report)


def full_and_back(engine: LmdbEngine, fill: Callable[[], object], free: Callable[[], object]) -> dict[str, object]:
    large = (append("b", 0, message("x" * 500_000)),)
    assert engine.commit([large]) == [None]
    fill()
    stored = 0
    try:
        while stored < 1000:
            assert engine.commit([(append("a", stored, message("y" * 10_000)),)]) == [None]
            stored += 1
    except StorageFullError:
        pass
    report: dict[str, object] = {
        "was_full": stored < 1000,
        "log_is_what_was_stored": len(engine.log(A)) == stored,
        "others_can_be_read": len(engine.log(B)) == 1 and len(engine.recent(9)) == 1 + (stored > 0),
    }
    erasing, too_large = outcomes(engine, (Erase(session=B),), (append("c", 0, message("x" * 500_000)),))
    report |= {"erased": erasing, "refused": too_large}
    free()
    report["after"] = outcomes(engine, (append("a", stored, message("y" * 10_000)),), (append("d", 0),))
    report["log_goes_on"] = len(engine.log(A)) == stored + 1
    return report


def outcomes(engine: LmdbEngine, *batch: tuple[object, ...]) -> list[str]:
    try:
        return [type(outcome).__name__ for outcome in engine.commit(batch)]  # type: ignore[arg-type]
    except HermesError as error:
        return [type(error).__name__] * len(batch)


def meet_a_failing_disk(directory: Path) -> None:
    engine = LmdbEngine.open(directory)
    stored = 0
    try:
        while stored < 100:
            assert engine.commit([(append("a", stored, epoch=engine.epoch),)]) == [None]
            stored += 1
    except StorageFailedError as error:
        say({"stored": stored, "error": str(error)})
    os._exit(0)  # as the daemon would, without another touch


def read_noise(directory: Path, seed: str) -> None:
    """Garble one page after the other and read everything each time."""
    dice = random.Random(int(seed))
    data = directory / "data.mdb"
    sound = data.read_bytes()
    used = [at for at in range(2 * 4096, len(sound), 4096) if any(sound[at : at + 64])]
    for _ in range(25):
        at = dice.choice(used)
        garbled = bytearray(sound)
        garbled[at : at + 4096] = dice.choice((bytes(4096), dice.randbytes(4096)))
        data.write_bytes(garbled)
        try:
            engine = LmdbEngine.open(directory)
        except HermesError:
            continue
        read_everything(engine)
        engine.close()


def long_name(number: int) -> SessionId:
    """So long that the tables have several pages."""
    return SessionId(f"s{number:02}".ljust(100, "-"))


def read_everything(engine: LmdbEngine) -> None:
    for name in [long_name(n) for n in range(60)]:
        for ask in (engine.log, engine.head, lambda each: engine.bound(SessionKey(f"key {each}"))):
            with suppress(HermesError):
                ask(name)
    engine.salvage(A)
    engine.tail(0, 10_000)
    engine.recent(100)
    engine.pending()
    engine.tallies("")
    engine.dead_letters()


def say(report: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(report))
    sys.stdout.flush()


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
