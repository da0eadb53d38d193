"""Backup and restore of a home: contents, left-out files, and refused archives."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from hermes.config.home import Home, lock, note_store, prepare
from hermes.domain.ids import Seq, SessionId
from hermes.domain.operations import PutFact
from hermes.domain.session.state import Phase, Preferences
from hermes.storage.copies import copy_store
from hermes.storage.lmdb_engine import LmdbEngine
from hermes.storage.verify import verify
from hermes.upkeep import store_archive as archive
from hermes.upkeep.backup import make_backup
from hermes.upkeep.backup_manifest import BackupError, Manifest
from hermes.upkeep.restore import ConfigFate, Restored, restore
from hermes.upkeep.seal import Seal
from hermes.upkeep.store_archive import UnsealedError, unpack
from tests.storage.older import make_older
from tests.storage.samples import append, message

A = SessionId("a")


def quiet(_what: str, _done: int, _total: int) -> None:
    pass


def a_home(directory: Path, text: str = "first") -> Home:
    home = Home.from_environ({"HERMES_HOME": str(directory)})
    prepare(home)
    engine = LmdbEngine.open(home.store_dir)
    engine.commit([(append("a", 0, message(text), pending=True),)])
    engine.close()
    note_store(home)
    home.config_file.write_text(f"# {text}\n")
    home.api_key_file.write_text("secret-secret-secret\n")
    (directory / "service.env").write_text("OPENAI_API_KEY=secret\n")
    (directory / "SOUL.md").write_text(f"You are {text}.")
    (directory / "work" / "a").mkdir(parents=True)
    (directory / "work" / "a" / "todo.json").write_text(f'["{text}"]')
    (directory / "media").mkdir()
    (directory / "media" / "picture").write_text(text)
    (directory / "processes" / "proc_1").mkdir(parents=True)
    (directory / "processes" / "proc_1" / "output.0").write_text(text)
    os.mkfifo(directory / "processes" / "proc_1" / "stdin")
    (directory / "index").mkdir()
    (directory / "index" / "data.mdb").write_text("made anew")
    return home


def back_up(home: Home, target: Path, *, with_key: bool = False) -> Manifest:
    return make_backup(
        home,
        target,
        copy_store=lambda place: copy_store(home.store_dir, place),
        check_store=verify,
        hot=False,
        with_key=with_key,
        progress=quiet,
    )


def put_back(
    home: Home, source: Path, *, like: Home | None = None, untrusted: bool = False, config: bool = True
) -> Restored:
    """`like`: the home whose backups are trusted."""
    if like is not None:
        shutil.copy(like.data_dir / "backup.key", home.data_dir)
    with lock(home):
        return restore(
            home, source, check=verify, progress=quiet, wants_config=lambda _diff: config, untrusted=untrusted
        )


def texts(home: Home) -> list[str]:
    """What a home says about which one it is, in each of its parts."""
    engine = LmdbEngine.open(home.store_dir)
    entry, *_ = engine.log(A)
    engine.close()
    parts = ("config.yaml", "SOUL.md", "work/a/todo.json", "processes/proc_1/output.0")
    return [repr(entry.record), *((home.data_dir / name).read_text() for name in parts)]


def speaks_of(home: Home, text: str) -> bool:
    return all(text in part for part in texts(home))


def names_in(archive: Path) -> set[str]:
    with tarfile.open(archive) as file:
        return set(file.getnames())


# ---------------------------------------------------------------- backup


@pytest.mark.parametrize("name", ["b.tar", "b.tar.gz", "b.tgz"])
def test_backup_contents_exclude_secrets(tmp_path: Path, name: str) -> None:
    home = a_home(tmp_path / "home")
    manifest = back_up(home, tmp_path / name)
    assert names_in(tmp_path / name) == {
        "manifest.json",
        "manifest.hmac",
        "store/data.mdb",
        "config.yaml",
        "SOUL.md",
        "media",
        "media/picture",
        "work",
        "work/a",
        "work/a/todo.json",
        "processes",
        "processes/proc_1",
        "processes/proc_1/output.0",
    }
    assert {"api.key", "backup.key", "index", "logs", "service.env"} <= {each.path for each in manifest.left_out}
    key = home.data_dir / "backup.key"
    assert key.stat().st_mode & 0o777 == 0o600
    assert manifest.problems == ()
    with tarfile.open(tmp_path / name) as file:
        contents = b"".join(file.extractfile(entry).read() for entry in file if entry.isreg())  # type: ignore[union-attr]
    assert b"secret-secret" not in contents
    assert b"OPENAI_API_KEY" not in contents
    assert key.read_bytes().strip() not in contents
    assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, "home"]
    assert not (home.data_dir / "backup.part").exists()


def test_the_key_is_in_a_backup_when_it_is_asked_for(tmp_path: Path) -> None:
    home = a_home(tmp_path / "home")
    back_up(home, tmp_path / "b.tar", with_key=True)
    assert "api.key" in names_in(tmp_path / "b.tar")
    other = Home.from_environ({"HERMES_HOME": str(tmp_path / "other")})
    prepare(other)
    put_back(other, tmp_path / "b.tar", like=home)
    assert other.api_key_file.read_text() == home.api_key_file.read_text()
    assert other.api_key_file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("name", "said"), [("there.tar", "exists already"), ("b.zip", "must end in"), ("no/b.tar", "no directory")]
)
def test_a_backup_that_cannot_be_made_leaves_nothing(tmp_path: Path, name: str, said: str) -> None:
    home = a_home(tmp_path / "home")
    (tmp_path / "there.tar").write_text("mine")
    with pytest.raises(BackupError, match=said):
        back_up(home, tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home", "there.tar"]
    assert (tmp_path / "there.tar").read_text() == "mine"


def test_remains_of_an_interrupted_backup_are_removed(tmp_path: Path) -> None:
    home = a_home(tmp_path / "home")
    (home.data_dir / "backup.part" / "store").mkdir(parents=True)
    (home.data_dir / "backup.part" / "junk").write_text("half")
    back_up(home, tmp_path / "b.tar")
    assert "junk" not in names_in(tmp_path / "b.tar")


def test_damaged_store_is_backed_up_and_reported(tmp_path: Path) -> None:
    home = a_home(tmp_path / "home", "x" * 9000)
    data = home.store_dir / "data.mdb"
    content = data.read_bytes()
    at = content.index(b"x" * 5000)
    data.write_bytes(content[:at] + b"y" + content[at + 1 :])
    manifest = back_up(home, tmp_path / "b.tar")
    assert manifest.problems == ("session a: record 0 is damaged (checksum mismatch)",)
    restored = put_back(home, tmp_path / "b.tar")
    assert restored.problems == manifest.problems


# ---------------------------------------------------------------- restore


def test_restore_replaces_and_keeps_old_contents(tmp_path: Path) -> None:
    first = a_home(tmp_path / "first", "first")
    back_up(first, tmp_path / "b.tar.gz")
    home = a_home(tmp_path / "second", "second")
    restored = put_back(home, tmp_path / "b.tar.gz", like=first)
    assert restored.config is ConfigFate.APPLIED
    assert speaks_of(home, "first")
    assert verify(home.store_dir) == []
    assert restored.open_sessions == ("a",)
    assert set(restored.names) == {"store", "config.yaml", "SOUL.md", "work", "processes", "media"}
    assert home.api_key_file.read_text() == "secret-secret-secret\n"
    assert not (home.data_dir / "index").exists()
    assert restored.kept_in is not None
    kept = Home(data_dir=restored.kept_in, config_file=restored.kept_in / "config.yaml")
    assert speaks_of(kept, "second")
    assert [path.name for path in home.data_dir.glob("*.part")] == []


def test_a_restore_into_an_empty_home_has_nothing_to_keep(tmp_path: Path) -> None:
    first = a_home(tmp_path / "first")
    back_up(first, tmp_path / "b.tar")
    home = Home.from_environ({"HERMES_HOME": str(tmp_path / "new")})
    prepare(home)
    assert put_back(home, tmp_path / "b.tar", like=first).kept_in is None
    assert speaks_of(home, "first")


def test_a_configuration_that_is_kept_elsewhere_goes_back_to_its_place(tmp_path: Path) -> None:
    home = Home(data_dir=a_home(tmp_path / "home").data_dir, config_file=tmp_path / "etc" / "config.yaml")
    home.config_file.parent.mkdir()
    home.config_file.write_text("# elsewhere\n")
    back_up(home, tmp_path / "b.tar")
    home.config_file.write_text("# changed\n")
    restored = put_back(home, tmp_path / "b.tar")
    assert home.config_file.read_text() == "# elsewhere\n"
    assert restored.kept_in is not None
    assert (restored.kept_in / "config.yaml").read_text() == "# changed\n"
    assert (home.data_dir / "config.yaml").read_text() == "# first\n"  # nobody's


def test_a_mere_copy_of_the_store_can_be_restored_too(tmp_path: Path) -> None:
    home = a_home(tmp_path / "home", "first")
    copy_store(home.store_dir, tmp_path / "copy")
    other = a_home(tmp_path / "other", "second")
    restored = put_back(other, tmp_path / "copy", untrusted=True)
    assert restored.names == ("store",)
    stored, config, *_ = texts(other)
    assert "first" in stored
    assert "second" in config


def test_an_older_store_is_refused_where_no_way_leads_from_it(tmp_path: Path) -> None:
    make_older(tmp_path / "older")
    home = a_home(tmp_path / "home")
    with pytest.raises(Exception, match="cannot migrate format"):
        put_back(home, tmp_path / "older", untrusted=True)
    assert speaks_of(home, "first")


def rewritten(source: Path, target: Path, change: str) -> None:
    """The archive with one thing wrong."""
    with tarfile.open(source) as old, tarfile.open(target, "w") as new:
        for entry in old:
            if not entry.isreg():
                new.addfile(entry)
                continue
            content = old.extractfile(entry).read()  # type: ignore[union-attr]
            if change == entry.name:
                content = content[:-1] + b"?"
            if change == "newer" and entry.name == "manifest.json":
                content = json.dumps({**json.loads(content), "hermes_backup": 9}).encode()
            if change == "escape":
                content = content.replace(b"SOUL.md", b"../SOUL.md")
                entry.name = entry.name.replace("SOUL.md", "../SOUL.md")
            if change == "missing" and entry.name == "SOUL.md":
                continue
            entry.size = len(content)
            new.addfile(entry, io.BytesIO(content))
        if change == "more":
            new.addfile(tarfile.TarInfo("more"), io.BytesIO())


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("manifest.json", "manifest is damaged"),
        ("store/data.mdb", "'store/data.mdb' is damaged"),
        ("SOUL.md", "'SOUL.md' is damaged"),
        ("newer", "it has format 9"),
        ("escape", "is outside of the home"),
        ("missing", "1 of its files are missing, 'SOUL.md'"),
        ("more", "it holds 'more'"),
    ],
)
def test_changed_archive_is_refused_and_changes_nothing(tmp_path: Path, change: str, said: str) -> None:
    back_up(a_home(tmp_path / "first", "first"), tmp_path / "b.tar")
    rewritten(tmp_path / "b.tar", tmp_path / "bad.tar", change)
    home = a_home(tmp_path / "second", "second")
    with pytest.raises(BackupError, match=f"{said}.*nothing was changed"):
        put_back(home, tmp_path / "bad.tar", untrusted=True)
    assert speaks_of(home, "second")
    assert not list(home.data_dir.glob("before-restore-*"))
    assert not (tmp_path / "SOUL.md").exists()


@pytest.mark.parametrize("name", ["b.tar", "b.tar.gz"])
def test_an_archive_that_was_cut_off_anywhere_is_refused(tmp_path: Path, name: str) -> None:
    back_up(a_home(tmp_path / "home"), tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    cut = tmp_path / f"cut-{name}"
    for percent in (0, 1, 30, 60, 70):  # the last fifth of a small tar may be padding
        cut.write_bytes(whole[: len(whole) * percent // 100])
        with pytest.raises(BackupError, match="nothing was changed"):
            unpack(cut, tmp_path / f"out-{percent}", quiet, untrusted=True)


@pytest.mark.skipif(not shutil.which("strace"), reason="kills at an exact step need strace")
def test_a_restore_that_was_killed_can_be_repeated_and_loses_nothing(tmp_path: Path) -> None:
    first = a_home(tmp_path / "first", "first")
    back_up(first, tmp_path / "b.tar")
    shutil.copy(first.data_dir / "backup.key", a_home(tmp_path / "template", "second").data_dir)
    step = 1 if "HERMES_TEST_KILLS" in os.environ else 4
    point, without_store = 2 - step, 0
    while True:
        point += step
        shutil.rmtree(tmp_path / "home", ignore_errors=True)
        shutil.copytree(tmp_path / "template", tmp_path / "home", ignore=shutil.ignore_patterns("stdin"))
        home = Home.from_environ({"HERMES_HOME": str(tmp_path / "home")})
        kill = [
            "strace",
            "-f",
            "-qq",
            "-o",
            "/dev/null",
            "-e",
            f"inject=?rename,?renameat2:signal=SIGKILL:when={point}",
        ]
        done = subprocess.run(
            [*kill, sys.executable, "-m", "hermes.cli.main", "restore", "--yes", str(tmp_path / "b.tar")],
            env={**os.environ, "HERMES_HOME": str(tmp_path / "home")},
            capture_output=True,
            check=False,
        )
        assert done.returncode in {0, -9, 137}, done.stderr
        without_store += not (home.store_dir / "data.mdb").exists()
        prepare(home, restoring=True)
        put_back(home, tmp_path / "b.tar")
        assert speaks_of(home, "first")
        kept = [path.read_text() for path in home.data_dir.glob("before-restore-*/SOUL.md")]
        assert any("second" in text for text in kept)
        if done.returncode == 0:
            break
    assert point > 5
    assert without_store


def test_progress_goes_up_to_the_whole(tmp_path: Path) -> None:
    home = a_home(tmp_path / "home", "x" * 3_000_000)
    told: list[tuple[str, int, int]] = []
    make_backup(
        home,
        tmp_path / "b.tar",
        copy_store=lambda place: copy_store(home.store_dir, place),
        check_store=verify,
        hot=False,
        with_key=False,
        progress=lambda *step: told.append(step),
    )
    unpack(tmp_path / "b.tar", tmp_path / "out", lambda *step: told.append(step), untrusted=True)
    for what in ("computing checksums", "packing", "unpacking"):
        steps = [(done, total) for name, done, total in told if name == what]
        assert len(steps) > 3
        assert steps == sorted(steps)
        assert steps[-1][0] == steps[-1][1]


# ---------------------------------------------------------------- trust


def without_seal(source: Path, target: Path, seal: bytes | None) -> None:
    """The archive with another seal, or none."""
    with tarfile.open(source) as old, tarfile.open(target, "w") as new:
        for entry in old:
            if not entry.isreg():
                new.addfile(entry)
                continue
            content = old.extractfile(entry).read()  # type: ignore[union-attr]
            if entry.name == "manifest.hmac":
                if seal is None:
                    continue
                content = seal
            entry.size = len(content)
            new.addfile(entry, io.BytesIO(content))


@pytest.mark.parametrize(("seal", "state"), [(None, Seal.MISSING), (b"0" * 64, Seal.WRONG), (b"", Seal.WRONG)])
def test_archive_without_a_valid_seal_is_refused(tmp_path: Path, seal: bytes | None, state: Seal) -> None:
    home = a_home(tmp_path / "home")
    back_up(home, tmp_path / "b.tar")
    without_seal(tmp_path / "b.tar", tmp_path / "bad.tar", seal)
    with pytest.raises(UnsealedError) as refused:
        put_back(home, tmp_path / "bad.tar")
    assert refused.value.state is state
    assert not list(home.data_dir.glob("before-restore-*"))


def test_archive_and_manifest_changed_together_are_refused(tmp_path: Path) -> None:
    home = a_home(tmp_path / "home")
    manifest = back_up(home, tmp_path / "b.tar")
    other = b"You are evil."
    with tarfile.open(tmp_path / "b.tar") as old, tarfile.open(tmp_path / "bad.tar", "w") as new:
        for entry in old:
            if not entry.isreg():
                new.addfile(entry)
                continue
            content = old.extractfile(entry).read()  # type: ignore[union-attr]
            if entry.name == "SOUL.md":
                content = other
            if entry.name == "manifest.json":
                files = (
                    replace(each, size_bytes=len(other), sha256=sha256(other).hexdigest())
                    if each.path == "SOUL.md"
                    else each
                    for each in manifest.files
                )
                content = replace(manifest, files=tuple(files)).encode()
            entry.size = len(content)
            new.addfile(entry, io.BytesIO(content))
    with pytest.raises(UnsealedError):
        put_back(home, tmp_path / "bad.tar")
    put_back(home, tmp_path / "bad.tar", untrusted=True)
    assert (home.data_dir / "SOUL.md").read_text() == "You are first."


def test_backup_of_another_home_and_a_copy_of_a_store_are_refused(tmp_path: Path) -> None:
    first, home = a_home(tmp_path / "first"), a_home(tmp_path / "second")
    back_up(first, tmp_path / "b.tar")
    copy_store(first.store_dir, tmp_path / "copy")
    for source, state in (("b.tar", Seal.NO_KEY), ("copy", Seal.MISSING)):
        with pytest.raises(UnsealedError) as refused:
            put_back(home, tmp_path / source)
        assert refused.value.state is state


def test_untrusted_backup_brings_no_authority(tmp_path: Path) -> None:
    first = a_home(tmp_path / "first", "first")
    engine = LmdbEngine.open(first.store_dir)
    head = engine.head(A)
    assert head is not None
    powerful = replace(head, grants=("recursive-delete",), preferences=Preferences(title="Talk", yolo=True))
    again = replace(append("a", 1, message("more"), pending=True), epoch=engine.epoch)
    names = ("grant:system-write", "chat.pairing", "chat.home.telegram", "api.keys", "chat.private:x", "response:x")
    facts = tuple(PutFact(name=name, value=b"1") for name in names)
    again = replace(again, head=replace(powerful, next_seq=Seq(2), phase=Phase.RUNNING))
    assert engine.commit([(again,), facts]) == [None, None]
    engine.close()
    back_up(first, tmp_path / "b.tar", with_key=True)
    home = a_home(tmp_path / "second", "second")
    home.api_key_file.write_text("present-present-present\n")
    restored = put_back(home, tmp_path / "b.tar", untrusted=True)
    assert set(restored.names) == {"store", "work", "media"}
    assert (restored.config, restored.open_sessions) == (ConfigFate.NONE, ())
    assert home.config_file.read_text() == "# second\n"
    assert (home.data_dir / "SOUL.md").read_text() == "You are second."
    assert home.api_key_file.read_text() == "present-present-present\n"
    engine = LmdbEngine.open(home.store_dir)
    after = engine.head(A)
    assert after is not None
    assert (after.grants, after.preferences, after.phase) == ((), Preferences(title="Talk"), Phase.SUSPENDED)
    assert [name for name in names if engine.fact(name) is not None] == ["response:x"]
    assert engine.outbox() == []
    engine.close()


def test_configuration_is_shown_as_a_diff_and_stays_when_it_is_declined(tmp_path: Path) -> None:
    home = a_home(tmp_path / "home")
    back_up(home, tmp_path / "b.tar")
    assert put_back(home, tmp_path / "b.tar", config=False).config is ConfigFate.SAME
    home.config_file.write_text("# mine\n")
    shown: list[str] = []

    def decline(diff: list[str]) -> bool:
        shown.extend(diff)
        return False

    with lock(home):
        restored = restore(home, tmp_path / "b.tar", check=verify, progress=quiet, wants_config=decline)
    assert restored.config is ConfigFate.DECLINED
    assert shown[-2:] == ["-# mine", "+# first"]
    assert home.config_file.read_text() == "# mine\n"
    assert put_back(home, tmp_path / "b.tar").config is ConfigFate.APPLIED
    assert home.config_file.read_text() == "# first\n"


@pytest.mark.parametrize(
    ("limit", "value", "said"),
    [
        ("_MAX_MANIFEST_BYTES", 100, "manifest.json is larger than 100 bytes"),
        ("_MAX_FILES", 2, "more than 2 files, directories"),
        ("_MAX_UNPACKED_BYTES", 1000, "out of bounds"),
        ("_RATIO_FROM_BYTES", 0, "more than 200 times its size"),
    ],
)
def test_limits_are_checked_before_anything_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, said: str
) -> None:
    home = a_home(tmp_path / "home")
    (home.data_dir / "media" / "zeros").write_bytes(bytes(30 << 20))
    back_up(home, tmp_path / "b.tar.gz")
    monkeypatch.setattr(archive, limit, value)
    with pytest.raises(BackupError, match=said):
        unpack(tmp_path / "b.tar.gz", tmp_path / "out", quiet, untrusted=True)
    assert not (tmp_path / "out").exists()


def test_disk_without_room_is_known_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    back_up(a_home(tmp_path / "home"), tmp_path / "b.tar")
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: type("Usage", (), {"free": 10}))
    with pytest.raises(BackupError, match="the disk has 0 MB left"):
        unpack(tmp_path / "b.tar", tmp_path / "out", quiet, untrusted=True)


def test_entry_with_a_huge_description_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "bomb.tar.gz", "w:gz", format=tarfile.PAX_FORMAT) as bomb:
        entry = tarfile.TarInfo("manifest.json")
        entry.pax_headers = {"comment": "x" * (1 << 20)}
        bomb.addfile(entry, io.BytesIO())
    with pytest.raises(BackupError, match="header of an entry is too large"):
        unpack(tmp_path / "bomb.tar.gz", tmp_path / "out", quiet, untrusted=True)


def test_file_with_a_wrong_size_is_not_written(tmp_path: Path) -> None:
    back_up(a_home(tmp_path / "home"), tmp_path / "b.tar")
    with tarfile.open(tmp_path / "b.tar") as old, tarfile.open(tmp_path / "bad.tar", "w") as new:
        for entry in old:
            if not entry.isreg():
                new.addfile(entry)
                continue
            content = old.extractfile(entry).read()  # type: ignore[union-attr]
            if entry.name == "SOUL.md":
                content = bytes(5 << 20)
            entry.size = len(content)
            new.addfile(entry, io.BytesIO(content))
    with pytest.raises(BackupError, match="its size differs from the manifest"):
        unpack(tmp_path / "bad.tar", tmp_path / "out", quiet, untrusted=True)
    assert not (tmp_path / "out" / "SOUL.md").exists()
