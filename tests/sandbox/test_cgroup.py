"""Control groups of sandboxes, on a tree of plain directories: no delegation is needed to run this."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from hermes.sandbox.cgroup import Cgroups, ControlGroup, GroupLimits
from hermes.sandbox.delegation import CgroupRefusal, base_of, open_cgroups
from tests.sandbox.cgroup_tree import FakeTree

DAEMON = 100
HELPER = 101
LIMITS = GroupLimits(memory_bytes=2**30, processes=64)
OWN = "user.slice/hermes.scope"


def opened(
    tree: FakeTree, *, own: str = OWN, ours: tuple[int, ...] = (DAEMON, HELPER), outlived: bool = False
) -> Cgroups | CgroupRefusal:
    ids = itertools.count()
    return open_cgroups(
        LIMITS,
        membership=f"4:memory:/old\n0::/{own}\n",
        ours=lambda: ours,
        outlived=outlived,
        new_id=lambda: str(next(ids)),
        root=tree.root,
        tree=tree,
    )


def divided(tree: FakeTree) -> Cgroups:
    tree.group(OWN, controllers="cpu memory pids", procs=(DAEMON,))
    cgroups = opened(tree)
    assert isinstance(cgroups, Cgroups)
    return cgroups


def made(cgroups: Cgroups) -> ControlGroup:
    group = cgroups.make()
    assert group is not None
    return group


@pytest.fixture
def tree(tmp_path: Path) -> FakeTree:
    return FakeTree(tmp_path / "cgroup")


@pytest.mark.parametrize(
    ("membership", "expected"),
    [
        ("0::/a.slice/b.service\n", "/sys/a.slice/b.service"),
        ("12:pids:/x\n0::/a.scope/daemon\n", "/sys/a.scope"),
        ("0::/\n", "/sys"),
        ("12:pids:/x\n", None),
        ("0::/../../b.scope\n", None),
        ("", None),
    ],
)
def test_own_group_is_read_from_the_unified_line(membership: str, expected: str | None) -> None:
    found = base_of(membership, Path("/sys"))
    assert found == (None if expected is None else Path(expected))


def test_daemon_moves_into_a_leaf_before_controllers_are_passed_on(tree: FakeTree) -> None:
    base = tree.group(OWN, controllers="cpu io memory pids", procs=(DAEMON, HELPER))
    assert isinstance(opened(tree), Cgroups)
    assert tree.procs(base) == set()
    assert tree.procs(base / "daemon") == {DAEMON, HELPER}
    assert (base / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"


def test_daemon_that_is_in_the_leaf_stays_there(tree: FakeTree) -> None:
    base = tree.group(OWN, controllers="memory pids")
    tree.group(f"{OWN}/daemon", procs=(DAEMON,))
    assert isinstance(opened(tree, own=f"{OWN}/daemon"), Cgroups)
    assert tree.procs(base / "daemon") == {DAEMON}
    assert (base / "cgroup.subtree_control").read_text() == "+memory +pids"


def test_group_with_foreign_processes_is_not_changed(tree: FakeTree) -> None:
    base = tree.group(OWN, controllers="memory pids", procs=(DAEMON, 7))
    assert opened(tree) is CgroupRefusal.SHARED
    assert tree.procs(base) == {DAEMON, 7}
    assert not (base / "daemon").exists()


def test_controllers_that_are_missing_are_a_refusal(tree: FakeTree) -> None:
    base = tree.group(OWN, controllers="cpu pids", procs=(DAEMON,))
    assert opened(tree) is CgroupRefusal.NO_CONTROLLERS
    assert tree.procs(base) == {DAEMON}


def test_machine_without_the_unified_tree_is_a_refusal(tree: FakeTree) -> None:
    assert opened(tree, own="nowhere") is CgroupRefusal.NOT_UNIFIED


def test_group_that_cannot_be_written_is_a_refusal(tree: FakeTree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.group(OWN, controllers="memory pids", procs=(DAEMON,))
    monkeypatch.setattr("os.access", lambda path, _mode: Path(path).name != "cgroup.subtree_control")
    assert opened(tree) is CgroupRefusal.NOT_DELEGATED


def test_service_that_its_processes_outlive_is_not_divided(tree: FakeTree) -> None:
    own = "system.slice/hermes.service"
    base = tree.group(own, controllers="memory pids", procs=(DAEMON,))
    assert opened(tree, own=own, outlived=True) is CgroupRefusal.OUTLIVED
    assert tree.procs(base) == {DAEMON}
    assert isinstance(opened(tree, own=own, outlived=False), Cgroups)


def test_group_of_a_command_has_limits_and_is_removed_at_its_end(tree: FakeTree) -> None:
    cgroups = divided(tree)
    group = made(cgroups)
    found = {name: (group.path / name).read_text() for name in ("memory.max", "pids.max", "cpu.weight")}
    assert found == {"memory.max": str(2**30), "pids.max": "67", "cpu.weight": "20"}
    assert (group.path / "memory.swap.max").read_text() == "0"
    assert (group.path / "memory.oom.group").read_text() == "1"
    tree.put(group.path, 500)  # a process that was left
    cgroups.release(group, kill=True)
    assert (f"{OWN}/{group.path.name}/cgroup.kill", "1") in tree.written
    assert not group.path.exists()


def test_group_of_a_background_command_stays_until_it_is_empty(tree: FakeTree) -> None:
    cgroups = divided(tree)
    group = made(cgroups)
    tree.put(group.path, 500)
    cgroups.release(group, kill=False)
    cgroups.release(made(cgroups), kill=True)
    assert tree.procs(group.path) == {500}
    tree.put(group.path)  # it ended
    made(cgroups)
    assert not group.path.exists()


def test_empty_group_of_a_starting_command_is_not_removed(tree: FakeTree) -> None:
    cgroups = divided(tree)
    first = made(cgroups)
    cgroups.release(made(cgroups), kill=True)
    assert first.path.exists()


def test_empty_groups_of_an_earlier_daemon_are_removed(tree: FakeTree) -> None:
    ended, runs = tree.group(f"{OWN}/box-ended"), tree.group(f"{OWN}/box-runs", procs=(7,))
    made(divided(tree))
    assert not ended.exists()
    assert runs.exists()


def test_group_without_limits_is_not_used(tree: FakeTree, monkeypatch: pytest.MonkeyPatch) -> None:
    cgroups = divided(tree)

    def fail(path: Path, text: str) -> None:
        raise OSError(f"cannot write {text} to {path.name}")

    monkeypatch.setattr(tree, "write", fail)
    assert cgroups.make() is None
    monkeypatch.undo()
    left = tree.root / OWN / "box-0"
    assert left.exists()
    made(cgroups)
    assert not left.exists()


@pytest.mark.parametrize(("events", "killed"), [("oom 1\noom_kill 2\n", True), ("oom 0\noom_kill 0\n", False)])
def test_kill_for_lack_of_memory_is_read_from_its_group(tree: FakeTree, events: str, killed: bool) -> None:
    group = made(divided(tree))
    assert not group.ran_out_of_memory()
    (group.path / "memory.events").write_text(events)
    assert group.ran_out_of_memory() is killed
