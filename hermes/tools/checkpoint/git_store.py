"""Store of git objects, written without git: no hook, filter or configuration of a repository can run.

`git --git-dir=STORE log --all` reads it. Blocking: call it in a thread.
"""

from __future__ import annotations

import os
import secrets
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from hashlib import sha1
from pathlib import Path
from typing import Final

from hermes.domain.values import dataclass

FILE, PROGRAM, LINK, TREE = "100644", "100755", "120000", "40000"
_HEAD: Final = "ref: refs/heads/checkpoints\n"
_CONFIG: Final = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEntry:
    mode: str
    name: bytes
    id: str


class GitStore:
    def __init__(self, path: Path) -> None:
        self.path = path

    def make(self) -> None:
        for name in ("objects", "refs/heads"):
            (self.path / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        for name, text in (("HEAD", _HEAD), ("config", _CONFIG)):
            if not (self.path / name).exists():
                (self.path / name).write_text(text, encoding="ascii")

    def put(self, kind: str, data: bytes) -> str:
        """Store an object and return its id."""
        whole = f"{kind} {len(data)}\0".encode() + data
        name = sha1(whole, usedforsecurity=False).hexdigest()
        place = self._place(name)
        if not place.exists():
            place.parent.mkdir(mode=0o700, exist_ok=True)
            fresh = place.with_name(f".{secrets.token_hex(8)}")
            fresh.write_bytes(zlib.compress(whole, 1))
            fresh.rename(place)
        return name

    def get(self, name: str) -> bytes:
        """Return the content of an object. Raises OSError or ValueError."""
        return zlib.decompress(self._place(name).read_bytes()).partition(b"\0")[2]

    def put_tree(self, entries: Iterable[TreeEntry]) -> str:
        ordered = sorted(entries, key=lambda each: each.name + (b"/" if each.mode == TREE else b""))
        data = b"".join(f"{each.mode} ".encode() + each.name + b"\0" + bytes.fromhex(each.id) for each in ordered)
        return self.put("tree", data)

    def tree(self, name: str) -> Iterator[TreeEntry]:
        data, at = self.get(name), 0
        while at < len(data):
            head, _, _ = data[at:].partition(b"\0")
            mode, _, file = head.partition(b" ")
            at += len(head) + 1
            yield TreeEntry(mode=mode.decode(), name=file, id=data[at : at + 20].hex())
            at += 20

    def put_commit(self, tree: str, parent: str, message: str, at: float) -> str:
        who = f"Hermes <hermes@localhost> {int(at)} +0000"
        lines = [f"tree {tree}", *([f"parent {parent}"] if parent else []), f"author {who}", f"committer {who}"]
        name = self.put("commit", "\n".join([*lines, "", message, ""]).encode())
        (self.path / "refs/heads/checkpoints").write_text(f"{name}\n", encoding="ascii")
        return name

    def commit_tree(self, name: str) -> str:
        """Return the tree of a commit."""
        return self.get(name).partition(b"\n")[0].removeprefix(b"tree ").decode()

    def size_bytes(self) -> int:
        return sum(file.stat().st_size for file in (self.path / "objects").glob("*/*"))

    def keep_only(self, commits: Iterable[str]) -> None:
        """Delete every object that these commits do not need."""
        needed: set[str] = set()
        for commit in commits:
            needed.add(commit)
            self._reach(self.commit_tree(commit), needed)
        for file in (self.path / "objects").glob("*/*"):
            if file.parent.name + file.name not in needed:
                with suppress(OSError):
                    file.unlink()

    def _reach(self, tree: str, needed: set[str]) -> None:
        if tree in needed:
            return
        needed.add(tree)
        for each in self.tree(tree):
            if each.mode == TREE:
                self._reach(each.id, needed)
            else:
                needed.add(each.id)

    def _place(self, name: str) -> Path:
        return self.path / "objects" / name[:2] / name[2:]


def opened_below(directory: int, name: bytes) -> int:
    """Open a directory inside an open one, without following a link."""
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
