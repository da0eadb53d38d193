"""Stores as a disk leaves them that lies about syncs: some pages are of older versions of the file."""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from pathlib import Path

from hermes.domain.ids import SessionId
from hermes.domain.operations import Erase
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.verify import check
from tests.storage.page_damage import PAGE
from tests.storage.samples import append, message, seen

COMMITS = 120
EVERY = 15  # commits between two versions


def versions_of_a_store(directory: Path) -> list[bytes]:
    """The data file of one store at several times, the newest last."""
    dice = random.Random(1)
    lengths: Counter[str] = Counter()
    versions = []
    engine = LmdbEngine.open(directory)
    for number in range(COMMITS):
        name = f"s{dice.randrange(25)}"
        records = [message(f"{n} " + "x" * dice.randrange(900)) for n in range(dice.randrange(1, 5))]
        due = 1e9 + number if dice.random() < 0.3 else None
        ids = seen(f"{name} {number}")
        pending = dice.random() < 0.3
        engine.commit(
            [(append(name, lengths[name], *records, bind=f"key {name}", pending=pending, due=due, seen=ids),)]
        )
        lengths[name] += len(records)
        if dice.random() < 0.05:
            engine.commit([(Erase(session=SessionId(name)),)])
            lengths[name] = 0
        if number % EVERY == 0:
            versions.append((directory / "data.mdb").read_bytes())
    engine.close()
    return [*versions, (directory / "data.mdb").read_bytes()]


def mixed(versions: list[bytes], seed: int) -> bytes:
    """The newest version with a part of its pages from older ones. The two meta pages stay, but in every third."""
    dice = random.Random(seed)
    data = bytearray(versions[-1])
    for at in range(0 if seed % 3 == 2 else 2 * PAGE, len(data), PAGE):
        if dice.random() < (0.3 if seed % 3 else 0.1):
            old = dice.choice(versions)[at : at + PAGE]
            data[at : at + len(old)] = old
    return bytes(data)


def main(directory: Path, seeds: int) -> None:
    """Check many such stores; prints how many were found damaged."""
    versions = versions_of_a_store(directory / "made")
    store = directory / "mixed"
    store.mkdir()
    damaged = 0
    for seed in range(seeds):
        (store / "data.mdb").write_bytes(mixed(versions, seed))
        (store / "lock.mdb").unlink(missing_ok=True)
        damaged += bool(check(store))
    sys.stdout.write(json.dumps(damaged))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
