"""A directory tree that follows the kernel's rules for control groups as far as the daemon relies on them."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

from hermes.sandbox.cgroup import Tree


class FakeTree(Tree):
    """Groups are directories below `root`. Members are in `cgroup.procs`, one pid a line."""

    def __init__(self, root: Path, controllers: str = "cpu memory pids") -> None:
        self.root = root
        self.written: list[tuple[str, str]] = []
        root.mkdir(parents=True, exist_ok=True)
        self.group("", controllers=controllers)

    def group(self, name: str, *, controllers: str = "", procs: tuple[int, ...] = ()) -> Path:
        path = self.root / name
        path.mkdir(parents=True, exist_ok=True)
        (path / "cgroup.controllers").write_text(controllers)
        (path / "cgroup.subtree_control").write_text("")
        self.put(path, *procs)
        return path

    def put(self, group: Path, *pids: int) -> None:
        (group / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))

    def procs(self, group: Path) -> set[int]:
        file = group / "cgroup.procs"
        return {int(line) for line in file.read_text().split()} if file.exists() else set()

    def write(self, path: Path, text: str) -> None:
        if path.name == "cgroup.procs":
            for file in self.root.rglob("cgroup.procs"):
                self.put(file.parent, *(self.procs(file.parent) - {int(text)}))
            self.put(path.parent, *self.procs(path.parent), int(text))
        elif path.name == "cgroup.subtree_control" and self.procs(path.parent):
            raise OSError(errno.EBUSY, "processes in the group")
        elif path.name == "cgroup.kill":
            self.put(path.parent)
        else:
            super().write(path, text)
        self.written.append((str(path.relative_to(self.root)), text))

    def remove(self, group: Path) -> None:
        if self.procs(group):
            raise OSError(errno.EBUSY, "processes in the group")
        shutil.rmtree(group)
