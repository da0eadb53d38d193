"""Home directory: paths, checks and lock."""

from __future__ import annotations

import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes.config.home import Home, has_store, is_free, lock, note_store, prepare
from hermes.config.loader import ApiConfig, Config, load_config
from hermes.config.secret import Secret, ensure_api_key
from hermes.domain.errors import AlreadyRunningError, ConfigError, HomeError


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.from_environ({"HERMES_HOME": str(tmp_path / "home")})


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def tree(path: Path) -> dict[str, bytes | None]:
    return {str(each): each.read_bytes() if each.is_file() else None for each in path.rglob("*")}


# ---------------------------------------------------------------- places


def test_everything_is_under_hermes_home_with_fixed_names(home: Home) -> None:
    names = [home.config_file, home.socket, home.api_key_file, home.log_dir, home.store_dir, home.lock_file]
    assert [path.name for path in names] == ["config.yaml", "hermes.sock", "api.key", "logs", "store", "hermes.lock"]
    assert {path.parent for path in names} == {home.data_dir}


@pytest.mark.parametrize("environ", [{}, {"HERMES_HOME": ""}])
def test_without_hermes_home_the_platforms_directories_are_used(
    environ: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    home = Home.from_environ(environ)
    assert home.data_dir == tmp_path / "data" / "hermes"
    assert home.config_file == tmp_path / "config" / "hermes" / "config.yaml"


def test_a_relative_home_and_a_tilde_are_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Home.from_environ({"HERMES_HOME": "x/y"}).data_dir == tmp_path / "x" / "y"
    assert Home.from_environ({"HERMES_HOME": "~/z"}).data_dir == tmp_path / "z"


def test_a_home_whose_name_is_not_utf8_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(HomeError, match=r"udcff.* not valid UTF-8; set HERMES_HOME") as caught:
        Home.from_environ({"HERMES_HOME": f"{tmp_path}/\udcff\udcfe"})
    str(caught.value).encode()


def test_home_that_is_a_file_is_refused_first(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HomeError, match=r"HERMES_HOME is .*file, which is not a directory"):
        Home.from_environ({"HERMES_HOME": str(tmp_path / "file")})


# ---------------------------------------------------------------- what is fit for use


def test_a_new_home_is_private_and_can_be_prepared_again(home: Home) -> None:
    prepare(home)
    before = tree(home.data_dir)
    prepare(home)
    assert tree(home.data_dir) == before
    assert [mode(path) for path in (home.data_dir, home.log_dir, home.store_dir)] == [0o700] * 3
    assert mode(home.marker) == 0o600


def test_an_empty_directory_is_made_private_when_it_is_taken(home: Home) -> None:
    home.data_dir.mkdir()
    home.data_dir.chmod(0o755)
    prepare(home)
    assert mode(home.data_dir) == 0o700


@pytest.mark.parametrize("what", ["missing", "empty"])
def test_missing_store_is_not_created_again(home: Home, what: str) -> None:
    prepare(home)
    data = home.store_dir / "data.mdb"
    data.write_bytes(b"stored")
    note_store(home)
    prepare(home)
    if what == "missing":
        shutil.rmtree(home.store_dir)
    else:
        data.write_bytes(b"")
    with pytest.raises(HomeError, match=rf"the store of this home is {what} .*hermes restore BACKUP") as caught:
        prepare(home)
    home.store_dir.mkdir(exist_ok=True)
    data.write_bytes(b"a backup")
    prepare(home)
    data.unlink()
    remedy = re.search(r"`(echo [^`]+)`", str(caught.value))
    assert remedy
    subprocess.run(remedy[1], shell=True, check=True)
    prepare(home)
    assert _exists_and_is_empty(home.store_dir)


def _exists_and_is_empty(directory: Path) -> bool:
    return directory.is_dir() and not any(directory.iterdir())


def test_home_with_only_user_files_is_accepted(home: Home) -> None:
    home.data_dir.mkdir()
    home.config_file.write_text("api: {}\n")
    home.api_key_file.write_text("a-key-of-my-own-making\n")
    prepare(home)
    assert home.marker.exists()


def test_a_symlinked_home_is_its_target(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("target")
    home = Home.from_environ({"HERMES_HOME": str(tmp_path / "link")})
    prepare(home)
    assert home.data_dir == tmp_path / "target"


def test_a_first_start_that_was_cut_off_is_taken_up(home: Home) -> None:
    home.data_dir.mkdir(mode=0o700)
    home.marker.write_text("")
    home.store_dir.mkdir()
    prepare(home)
    assert home.marker.read_text() == "1\n"


@pytest.mark.parametrize("names", [["state.db"], ["config.yaml", "gateway.pid"], ["a", "b", "c", "d"], ["store"]])
def test_a_directory_that_another_program_made_is_refused_untouched(home: Home, names: list[str]) -> None:
    home.data_dir.mkdir(mode=0o700)
    for name in names:
        (home.data_dir / name).write_text("theirs")
    before = tree(home.data_dir)
    with pytest.raises(HomeError, match=r"belongs to another program .* set HERMES_HOME") as caught:
        prepare(home)
    assert caught.value.exit_code == 78
    assert tree(home.data_dir) == before


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("marker", [bytes(8), b"\xff\xfe", b"words", b"1\0\0"])
def test_a_damaged_marker_is_named_with_the_remedy(home: Home, marker: bytes, stored: bool) -> None:
    prepare(home)
    if stored:
        (home.store_dir / "data.mdb").write_bytes(b"stored")
    home.marker.write_bytes(marker)
    with pytest.raises(HomeError, match="is damaged") as caught:
        prepare(home)
    assert home.marker.read_bytes() == marker
    remedy = re.search(r"`(printf [^`]+)`", str(caught.value))
    assert remedy
    subprocess.run(remedy[1], shell=True, check=True)
    prepare(home)
    assert has_store(home) == stored


@pytest.mark.parametrize("marker", [b"2\n", b"99999999"])
def test_a_home_of_an_unknown_layout_is_refused(home: Home, marker: bytes) -> None:
    home.data_dir.mkdir(mode=0o700)
    home.marker.write_bytes(marker)
    with pytest.raises(HomeError, match="this Hermes supports 1"):
        prepare(home)
    assert home.marker.read_bytes() == marker


def test_a_home_that_is_a_file_is_refused(home: Home) -> None:
    home.data_dir.write_text("a file")
    with pytest.raises(HomeError, match="is not a directory"):
        prepare(home)


def test_a_home_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HomeError, match="Not a directory"):
        prepare(Home.from_environ({"HERMES_HOME": str(tmp_path / "file" / "home")}))


def test_a_home_in_a_loop_of_links_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(HomeError, match="symbolic links"):
        prepare(Home.from_environ({"HERMES_HOME": str(tmp_path / "a")}))


def test_a_home_that_others_can_write_to_is_refused(home: Home) -> None:
    home.data_dir.mkdir()
    for bits in (0o770, 0o707):
        home.data_dir.chmod(bits)
        with pytest.raises(HomeError, match=r"other users can write .*; set HERMES_HOME to a new directory"):
            prepare(home)
    assert list(home.data_dir.iterdir()) == []


def test_only_a_home_of_ours_is_to_be_closed_to_others(home: Home) -> None:
    prepare(home)
    home.data_dir.chmod(0o770)
    with pytest.raises(HomeError, match=r"run `chmod 700 .*` or set HERMES_HOME"):
        prepare(home)
    home.data_dir.chmod(0o1777)
    with pytest.raises(HomeError, match="other users can write") as caught:
        prepare(home)
    assert "chmod" not in str(caught.value)


def test_shared_directory_is_refused_without_advice_to_chmod(home: Home) -> None:
    home.data_dir.mkdir()
    (home.data_dir / "theirs").touch()
    home.data_dir.chmod(0o1777)
    with pytest.raises(HomeError, match="belongs to another program") as caught:
        prepare(home)
    assert "chmod" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_home_of_another_user_is_refused(home: Home) -> None:
    home.data_dir.mkdir(mode=0o700)
    os.chown(home.data_dir, 12345, -1)
    with pytest.raises(HomeError, match="belongs to uid 12345"):
        prepare(home)


@pytest.fixture
def public_dir() -> Iterator[Path]:
    """Where another user can get to; pytest's own directories are closed to others."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def test_a_home_that_is_not_writable_is_refused(public_dir: Path) -> None:
    home = Home.from_environ({"HERMES_HOME": str(public_dir / "home")})
    home.data_dir.mkdir()
    home.data_dir.chmod(0o500)
    if os.geteuid() == 0:
        os.chown(home.data_dir, 12345, -1)
    child = os.fork()  # root can write everywhere, so another user has to try
    if child == 0:
        try:
            if os.geteuid() == 0:
                os.setuid(12345)
            prepare(home)
        except HomeError as error:
            os._exit(0 if "is not writable" in str(error) else 2)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_too_long_socket_path_is_refused_before_any_write(tmp_path: Path) -> None:
    fits = tmp_path / ("x" * (107 - len("/hermes.sock") - len(os.fsencode(tmp_path)) - 1))
    prepare(Home.from_environ({"HERMES_HOME": str(fits)}))
    too_long = fits.with_name(f"{fits.name}é")
    with pytest.raises(HomeError, match=r"109 bytes.* set HERMES_HOME to a shorter directory"):
        prepare(Home.from_environ({"HERMES_HOME": str(too_long)}))
    assert not too_long.exists()


# ---------------------------------------------------------------- the lock


def test_a_second_lock_names_the_pid_of_the_first(home: Home) -> None:
    prepare(home)
    with lock(home):
        assert not is_free(home)
        with pytest.raises(AlreadyRunningError, match=f"pid {os.getpid()}") as caught:
            lock(home)
    assert (caught.value.pid, caught.value.exit_code) == (os.getpid(), 75)
    assert home.lock_file.read_text() == f"{os.getpid()}\n"
    assert is_free(home)
    lock(home).close()


def test_a_lock_ends_with_its_process_however_that_ends(home: Home) -> None:
    prepare(home)
    code = """
import os, sys
from hermes.config.home import Home, lock
held = lock(Home.from_environ(os.environ))
print("held", flush=True)
sys.stdin.read()
"""
    environ = {**os.environ, "HERMES_HOME": str(home.data_dir)}
    with subprocess.Popen(
        [sys.executable, "-c", code], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(AlreadyRunningError) as caught:
            lock(home)
        assert caught.value.pid == other.pid
        other.send_signal(signal.SIGKILL)
    lock(home).close()


def test_lock_file_holds_only_the_current_pid(home: Home) -> None:
    prepare(home)
    home.lock_file.write_text("1234567890\n")
    with lock(home):
        assert home.lock_file.read_text() == f"{os.getpid()}\n"


def test_a_garbled_lock_file_does_not_hide_that_it_is_held(home: Home) -> None:
    prepare(home)
    with lock(home):
        home.lock_file.write_bytes(b"\xff\0not a pid")
        with pytest.raises(AlreadyRunningError, match="pid unknown") as caught:
            lock(home)
    assert caught.value.pid is None
    assert mode(home.lock_file) == 0o600


def test_a_lock_in_a_home_that_is_not_there_is_refused(home: Home) -> None:
    assert is_free(home)
    with pytest.raises(HomeError, match="cannot be opened"):
        lock(home)


# ---------------------------------------------------------------- the API key


def test_the_first_start_makes_a_private_key_that_stays(home: Home) -> None:
    prepare(home)
    key = ensure_api_key(home, Config(), {})
    assert re.fullmatch(r"[A-Za-z0-9_-]{43}", key.reveal())
    assert mode(home.api_key_file) == 0o600
    assert ensure_api_key(home, Config(), {}).reveal() == key.reveal()
    assert {each.name for each in home.data_dir.iterdir()} == {".hermes-home", "logs", "store", "api.key"}


def test_the_names_of_a_new_home_and_of_its_key_are_synced(home: Home, synced: list[Path]) -> None:
    prepare(home)
    assert home.data_dir in synced
    assert synced[-1] == home.data_dir.parent
    synced.clear()
    ensure_api_key(home, Config(), {})
    assert synced == [home.data_dir / "api.key.new", home.data_dir]
    synced.clear()
    note_store(home)
    assert synced == [home.data_dir / ".hermes-home.new", home.data_dir]
    synced.clear()
    note_store(home)
    assert synced == [], "it is there already"


def test_a_first_start_that_was_cut_off_at_its_marker_is_taken_up(home: Home) -> None:
    home.data_dir.mkdir(mode=0o700)
    (home.data_dir / ".hermes-home.new").write_text("")
    prepare(home)
    assert home.marker.read_text() == "1\n"


def test_a_key_that_was_being_made_at_a_crash_is_made_again(home: Home) -> None:
    prepare(home)
    (home.data_dir / "api.key.new").write_text("half")
    assert len(ensure_api_key(home, Config(), {}).reveal()) == 43


def test_the_variable_goes_before_the_file(home: Home) -> None:
    prepare(home)
    assert ensure_api_key(home, Config(), {"HERMES_API_KEY": "k" * 16}).reveal() == "k" * 16
    assert not home.api_key_file.exists()


@pytest.mark.parametrize(
    "value", ["", "short", "fünfzehn-zeichen-und", "with spaces in between", "with\nlines-and-lines", "\0" * 20]
)
def test_a_bad_key_in_the_variable_is_refused_without_repeating_it(home: Home, value: str) -> None:
    with pytest.raises(ConfigError, match="HERMES_API_KEY") as caught:
        ensure_api_key(home, Config(), {"HERMES_API_KEY": value})
    assert not value or value not in str(caught.value)


@pytest.mark.parametrize("bits", [0o640, 0o604, 0o660, 0o644])
def test_a_key_file_open_to_others_is_refused_with_the_remedy(home: Home, bits: int) -> None:
    prepare(home)
    home.api_key_file.write_text("k" * 20)
    home.api_key_file.chmod(bits)
    with pytest.raises(ConfigError, match=re.escape(f"run `chmod 600 {home.api_key_file}`")):
        ensure_api_key(home, Config(), {})


@pytest.mark.parametrize(("text", "problem"), [("", "is empty"), ("\n", "is empty"), ("short\n", "fewer than 16")])
def test_an_empty_or_short_key_file_is_refused(home: Home, text: str, problem: str) -> None:
    prepare(home)
    home.api_key_file.write_text(text)
    home.api_key_file.chmod(0o600)
    with pytest.raises(ConfigError, match=problem):
        ensure_api_key(home, Config(), {})
    assert home.api_key_file.read_text() == text


def test_a_configured_key_file_is_read_but_never_made(home: Home, tmp_path: Path) -> None:
    prepare(home)
    config = Config(api=ApiConfig(key_file=str(tmp_path / "elsewhere")))
    with pytest.raises(ConfigError, match="there is no file"):
        ensure_api_key(home, config, {})
    assert not (tmp_path / "elsewhere").exists()
    (tmp_path / "elsewhere").write_text("k" * 20)
    (tmp_path / "elsewhere").chmod(0o600)
    assert ensure_api_key(home, config, {}).reveal() == "k" * 20


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (Path.mkdir, "cannot be read: it is a directory"),
        (os.mkfifo, "cannot be read: it is not a regular file"),
        (lambda path: path.symlink_to("nowhere"), "cannot be read: it is a link to a missing file"),
    ],
    ids=["directory", "pipe", "dangling link"],
)
def test_key_or_config_that_is_not_a_regular_file_is_reported(
    home: Home, make: Callable[[Path], None], problem: str
) -> None:
    prepare(home)
    make(home.api_key_file)
    with pytest.raises(ConfigError, match=problem):
        ensure_api_key(home, Config(), {})
    make(home.config_file)
    with pytest.raises(ConfigError, match=problem):
        load_config(home, {})


def test_a_secret_does_not_show_itself() -> None:
    secret = Secret("canary")
    assert "canary" not in f"{secret} {secret!r} {[secret]}"
