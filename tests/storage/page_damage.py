"""Finding the pages of a store that nobody uses, and losing one of them."""

from __future__ import annotations

from pathlib import Path

from hermes.storage import pages
from hermes.storage.env import DATA_FILE
from hermes.storage.lmdb_engine import LmdbEngine

PAGE = 4096


def leaves(directory: Path, table: str) -> list[tuple[int, list[bytes]]]:
    """The numbers of a table's leaf pages and the keys on them."""
    engine = LmdbEngine.open(directory)
    found = []
    with engine._view() as view:
        description = view._txn.get(table.encode())
        assert description is not None
        below = [pages._NUMBER.unpack_from(description, pages._ROOT_AT)[0]]
        while below:
            number = below.pop(0)
            page, is_leaf, places = engine._pages._read(number)
            if is_leaf:
                found.append((number, pages._keys(page, places)))
            else:
                below += [pages._child(page, place) for place in places]
    engine.close()
    return found


def overwrite(directory: Path, number: int, content: bytes = bytes(PAGE)) -> None:
    with (directory / DATA_FILE).open("r+b") as file:
        file.seek(number * PAGE)
        file.write(content)


def lose(directory: Path, table: str, which: int = 1) -> list[bytes]:
    """The keys on a leaf that is gone now."""
    number, keys = leaves(directory, table)[which]
    overwrite(directory, number)
    return keys
