"""Entries of a backup: kept, or left out with a reason, without failing the backup."""

from __future__ import annotations

import io
import json
import os
import socket
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from hermes.config.home import Home, prepare
from hermes.upkeep.backup import why_left_out
from hermes.upkeep.backup_manifest import ArchiveEntry, BackupError, EntryKind, LeftOutReason, Manifest, points_inside
from hermes.upkeep.store_archive import unpack
from tests.upkeep.test_backup import a_home, back_up, names_in, put_back, quiet, speaks_of


def reasons(manifest: Manifest, below: str = "") -> dict[str, LeftOutReason]:
    return {each.path: each.reason for each in manifest.left_out if each.path.startswith(below)}


def restored_elsewhere(home: Home, archive: Path, directory: Path) -> Home:
    other = Home.from_environ({"HERMES_HOME": str(directory)})
    prepare(other)
    put_back(other, archive, like=home)
    return other


def nest(directory: Path, name: str, levels: int) -> None:
    """Make nested directories by descriptors: their path may be longer than the system allows."""
    descriptor = os.open(directory, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=descriptor)
        inner = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(descriptor)


def unnest(directory: Path, name: str) -> None:
    """Remove them again: pytest's own cleanup recurses."""
    base = os.open(directory, os.O_RDONLY)
    while True:  # the rest moves up by one level in each round
        inner = os.open(name, os.O_RDONLY, dir_fd=base)
        is_last = name not in os.listdir(inner)  # noqa: PTH208 - a descriptor
        if not is_last:
            os.rename(name, "rest", src_dir_fd=inner, dst_dir_fd=base)
        os.close(inner)
        os.rmdir(name, dir_fd=base)
        if is_last:
            break
        os.rename("rest", name, src_dir_fd=base, dst_dir_fd=base)
    os.close(base)


@pytest.mark.parametrize(
    ("name", "levels", "reason"), [("d", 1500, LeftOutReason.TOO_DEEP), ("n" * 180, 30, LeftOutReason.PATH_TOO_LONG)]
)
def test_a_very_deep_tree_costs_only_its_own_end(
    tmp_path: Path, name: str, levels: int, reason: LeftOutReason
) -> None:
    home = a_home(tmp_path / "home")
    files = home.data_dir / "work" / "a"
    nest(files, name, levels)
    try:
        manifest = back_up(home, tmp_path / "b.tar")
    finally:
        unnest(files, name)
    assert list(reasons(manifest, "work/").values()) == [reason]
    other = restored_elsewhere(home, tmp_path / "b.tar", tmp_path / "other")
    assert speaks_of(other, "first")
    assert (other.data_dir / "work" / "a" / name / name).is_dir()


def test_an_entry_that_cannot_be_read_is_left_out_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = a_home(tmp_path / "home")
    work = home.data_dir / "work" / "a"
    errors = {"denied": PermissionError(13, "denied"), "gone": FileNotFoundError(2, "gone"), "bad": OSError(5, "I/O")}
    for name in errors:
        (work / name).write_text(name)
    real = os.open

    def failing(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if error := errors.get(str(path)):
            raise error
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", failing)
    manifest = back_up(home, tmp_path / "b.tar")
    assert reasons(manifest, "work/") == {
        "work/a/bad": LeftOutReason.READ_ERROR,
        "work/a/denied": LeftOutReason.NO_PERMISSION,
        "work/a/gone": LeftOutReason.VANISHED,
    }
    assert "work/a/todo.json" in names_in(tmp_path / "b.tar")


def test_a_full_disk_fails_the_backup(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = a_home(tmp_path / "home")
    real = Path.mkdir

    def full(path: Path, *args: object, **more: object) -> None:
        if "backup.part/work" in str(path):
            raise OSError(28, "No space left on device")
        real(path, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(BackupError, match="No space left"):
        back_up(home, tmp_path / "b.tar")
    assert not (tmp_path / "b.tar").exists()


@pytest.mark.parametrize("what", ["file", "directory"])
def test_entry_replaced_by_a_symlink_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    home = a_home(tmp_path / "home")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "inner").write_text("stolen")
    victim = home.data_dir / "work" / "a" / "victim"
    if what == "file":
        victim.write_text("mine")
    else:
        victim.mkdir()
        (victim / "inner").write_text("mine")
    real = os.open

    def exchange(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path) == "victim" and not victim.is_symlink():
            victim.rename(tmp_path / "moved")
            victim.symlink_to(outside / "inner" if what == "file" else outside)
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", exchange)
    manifest = back_up(home, tmp_path / "b.tar")
    assert reasons(manifest, "work/") == {"work/a/victim": LeftOutReason.LINK_OUTSIDE}
    assert b"stolen" not in (tmp_path / "b.tar").read_bytes()


def test_a_directory_exchanged_while_it_is_read_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = a_home(tmp_path / "home")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "inner").write_text("stolen")
    victim = home.data_dir / "work" / "a" / "victim"
    victim.mkdir()
    (victim / "inner").write_text("mine")
    real = os.open

    def exchange(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if str(path) == "inner" and not victim.is_symlink():
            victim.rename(tmp_path / "moved")
            victim.symlink_to(outside)
        return real(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", exchange)
    back_up(home, tmp_path / "b.tar")
    content = (tmp_path / "b.tar").read_bytes()
    assert b"mine" in content
    assert b"stolen" not in content


def test_empty_directories_and_inner_symlinks_come_back(tmp_path: Path) -> None:
    home = a_home(tmp_path / "home")
    files = home.data_dir / "work" / "a" / "files"
    (files / "empty" / "inner").mkdir(parents=True)
    (files / "lib").mkdir()
    (files / "lib" / "x").write_text("x")
    links = {"lib64": "lib", "lib/up": "../empty", "dangling": "not/there", "self": "self"}
    for name, target in links.items():
        (files / name).symlink_to(target)
    (files / "absolute").symlink_to(files / "lib")
    manifest = back_up(home, tmp_path / "b.tar.gz")
    assert reasons(manifest, "work/") == {}
    other = restored_elsewhere(home, tmp_path / "b.tar.gz", tmp_path / "other")
    back = other.data_dir / "work" / "a" / "files"
    assert (back / "empty" / "inner").is_dir()
    assert {name: str((back / name).readlink()) for name in links} == links
    assert (back / "absolute").readlink() == Path("lib")
    assert (back / "absolute" / "x").read_text() == "x"


def test_outside_symlinks_and_special_files_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = a_home(tmp_path / "home")
    files = home.data_dir / "work" / "a" / "files"
    (files / "deep").mkdir(parents=True)
    (files / "etc").symlink_to("/etc")
    (files / "key").symlink_to("../../../api.key")
    (files / "deep" / "top").symlink_to("../../../../work")
    (files / "deep" / "sly").symlink_to("top/../api.key")  # by its name alone this stays inside
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(files)  # the path of a socket is limited
        server.bind("socket")
        manifest = back_up(home, tmp_path / "b.tar")
    assert reasons(manifest, "work/") == {
        "work/a/files/etc": LeftOutReason.LINK_OUTSIDE,
        "work/a/files/key": LeftOutReason.LINK_OUTSIDE,
        "work/a/files/deep/sly": LeftOutReason.LINK_OUTSIDE,
        "work/a/files/socket": LeftOutReason.SPECIAL_FILE,
    }
    assert reasons(manifest, "processes/") == {"processes/proc_1/stdin": LeftOutReason.SPECIAL_FILE}


@pytest.mark.parametrize(
    ("target", "inside"),
    [("x", True), ("../b", True), ("..", True), ("../..", False), ("../../api.key", False), ("/work/a", False)],
)
def test_a_symlink_is_judged_by_its_top_directory(target: str, inside: bool) -> None:
    assert points_inside("work/a/link", target) is inside


def test_a_top_level_symlink_never_points_inside() -> None:
    assert not points_inside("work", "work")


# ---------------------------------------------------------------- archives made by others


def archive_of(target: Path, *items: ArchiveEntry) -> Path:
    manifest = Manifest(version="1", made_at=0.0, home="/", hot=False, files=items)
    types = {
        EntryKind.FILE: tarfile.REGTYPE,
        EntryKind.DIRECTORY: tarfile.DIRTYPE,
        EntryKind.SYMLINK: tarfile.SYMTYPE,
    }
    with tarfile.open(target, "w") as file:
        raw = manifest.encode()
        for name, content in (("manifest.json", raw), ("manifest.hmac", b"0")):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            file.addfile(entry, io.BytesIO(content))
        for item in items:
            entry = tarfile.TarInfo(item.path)
            entry.type, entry.linkname = types[item.kind], item.target
            file.addfile(entry, io.BytesIO())
    return target


def link(path: str, target: str) -> ArchiveEntry:
    return ArchiveEntry(path=path, kind=EntryKind.SYMLINK, target=target)


EMPTY = sha256(b"").hexdigest()


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ((link("work/l", "/etc"),), "points outside"),
        ((link("work/l", "../api.key"),), "points outside"),
        ((link("work", "media"),), "points outside"),
        ((link("work/d/top", ".."), link("work/d/l", "top/../x")), "points outside"),
        ((link("work/l", "d"), ArchiveEntry(path="work/l/f", sha256=EMPTY)), "cannot be unpacked"),
        (
            (ArchiveEntry(path="work/d", kind=EntryKind.DIRECTORY), link("work/l", "d"), link("work/l/m", "x")),
            "below a symlink",
        ),
        ((ArchiveEntry(path="../work", kind=EntryKind.DIRECTORY),), "is outside of"),
        ((ArchiveEntry(path="/".join("d" * 1500), kind=EntryKind.DIRECTORY),), "more than 200 directories"),
    ],
)
def test_an_archive_whose_entries_lead_elsewhere_is_refused(
    tmp_path: Path, items: tuple[ArchiveEntry, ...], said: str
) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(BackupError, match=said):
        unpack(archive_of(tmp_path / "b.tar", *items), tmp_path / "out", quiet, untrusted=True)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["b.tar", "out"]


@pytest.mark.parametrize("owner", [-1, 2**32 - 1, "root"])
def test_a_manifest_with_an_impossible_owner_is_refused(owner: object) -> None:
    raw = json.loads(Manifest(version="1", made_at=0.0, home="/", hot=False, files=()).encode())
    raw["files"] = [{"path": "x", "size_bytes": 0, "sha256": "", "uid": owner}]
    with pytest.raises(BackupError, match="manifest is damaged"):
        Manifest.decode(json.dumps(raw).encode())


def test_a_manifest_of_the_first_format_is_read() -> None:
    item = {"path": "SOUL.md", "size_bytes": 1, "sha256": "00", "mode": 0o600}
    values = {"version": "0", "made_at": 1.0, "home": "/h", "hot": False, "files": [item], "problems": []}
    raw = json.dumps({"hermes_backup": 1, **values, "left_out": ["api.key"]}).encode()
    manifest = Manifest.decode(raw)
    assert manifest.files == (ArchiveEntry(path="SOUL.md", size_bytes=1, sha256="00"),)
    assert reasons(manifest) == {"api.key": LeftOutReason.NOT_RECORDED}


# ---------------------------------------------------------------- what is left out by design


def test_every_file_of_the_home_is_in_the_backup_or_listed_as_left_out(tmp_path: Path) -> None:
    home = a_home(tmp_path / "home")
    for name in ("trusted_directories.json", "trusted_prompts.json", "telegram.token", "notes.txt", "admin.token"):
        (home.data_dir / name).write_text("x")
    (home.store_dir / "format-1").write_text("old")
    manifest = back_up(home, tmp_path / "b.tar")
    found = reasons(manifest)
    kept = names_in(tmp_path / "b.tar")
    present = {each.name for each in home.data_dir.iterdir()}
    assert present == {each for each in present if each in kept or each in found or each == "store"}
    assert {
        name: found[name] for name in found if name.startswith(("trusted", "api", "backup", "tele", "notes"))
    } == {
        "api.key": LeftOutReason.SECRET,
        "backup.key": LeftOutReason.SECRET,
        "telegram.token": LeftOutReason.SECRET,
        "trusted_directories.json": LeftOutReason.TRUST,
        "trusted_prompts.json": LeftOutReason.TRUST,
        "notes.txt": LeftOutReason.UNKNOWN_NAME,
    }
    assert found["store/format-1"] is LeftOutReason.EARLIER
    assert found["admin.token"] is LeftOutReason.RUNTIME


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("index", LeftOutReason.REBUILT),
        ("logs", LeftOutReason.LOG),
        ("service.env", LeftOutReason.SECRET),
        ("hermes.sock", LeftOutReason.RUNTIME),
        ("before-restore-20260101-000000", LeftOutReason.EARLIER),
        ("store/lock.mdb", LeftOutReason.RUNTIME),
    ],
)
def test_the_name_gives_the_reason(name: str, reason: LeftOutReason) -> None:
    assert why_left_out(name) is reason
