"""The home: the one place Hermes writes to, and the lock that keeps it to one daemon.

With `$HERMES_HOME` everything is under it; without, the platform's own data and config directories are used.
Nothing is written before every check has passed, and a directory that another program made is never touched.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Self

from hermes.errors import AlreadyRunningError, HomeError
from hermes.values import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = 1  # of the home's layout, kept in its marker
_MARKER = ".hermes-home"
_BROUGHT = frozenset({"config.yaml", "api.key"})  # what a person may put there before the first start
_SOCKET_PATH_MOST = 107  # bytes; the kernel's 108 with the closing NUL


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    data_dir: Path
    config_file: Path

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Self:
        if given := environ.get("HERMES_HOME"):
            data_dir = _real(given)
            return cls(data_dir=data_dir, config_file=data_dir / "config.yaml")
        import platformdirs  # noqa: PLC0415 - slow, and not needed when the variable is set

        config_dir = _real(platformdirs.user_config_dir("hermes", appauthor=False))
        return cls(
            data_dir=_real(platformdirs.user_data_dir("hermes", appauthor=False)),
            config_file=config_dir / "config.yaml",
        )

    @property
    def socket(self) -> Path:
        return self.data_dir / "hermes.sock"

    @property
    def api_key_file(self) -> Path:
        return self.data_dir / "api.key"

    @property
    def log_dir(self) -> Path:
        return self.data_dir / "logs"

    @property
    def store_dir(self) -> Path:
        return self.data_dir / "store"

    @property
    def lock_file(self) -> Path:
        return self.data_dir / "hermes.lock"

    @property
    def marker(self) -> Path:
        return self.data_dir / _MARKER


def _real(path: str) -> Path:
    # Unlike Path.resolve this does not raise on a loop of links: the checks then say so.
    return Path(os.path.realpath(os.path.expanduser(path)))  # noqa: PTH111


def prepare(home: Home) -> None:
    """Make the home, or find it fit for use. Raises HomeError before anything is written."""
    try:
        _check_socket_path(home)
        if _exists(home.data_dir):
            _check_directory(home.data_dir)
            _check_ours(home)
        _make(home)
    except OSError as error:
        problem = error.strerror or str(error)
        raise HomeError(f"the home {home.data_dir} cannot be used: {problem} ({error.filename})") from error


def _check_socket_path(home: Home) -> None:
    size = len(os.fsencode(home.socket))
    if size > _SOCKET_PATH_MOST:
        raise HomeError(
            f"the path of the admin socket {home.socket} has {size} bytes and Unix sockets allow "
            f"{_SOCKET_PATH_MOST}; set HERMES_HOME to a shorter directory"
        )


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


def _check_directory(path: Path) -> None:
    status = path.stat()
    if not stat.S_ISDIR(status.st_mode):
        raise HomeError(f"the home {path} is not a directory; set HERMES_HOME to one")
    if status.st_uid != os.geteuid():
        raise HomeError(
            f"the home {path} belongs to uid {status.st_uid} and this is uid {os.geteuid()}; "
            "run Hermes as its owner or set HERMES_HOME to a directory of your own"
        )
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise HomeError(f"other users can write to the home {path}; run `chmod 700 {path}`")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise HomeError(f"the home {path} is not writable; run `chmod 700 {path}` or set another HERMES_HOME")


def _check_ours(home: Home) -> None:
    try:
        text = home.marker.read_text("ascii").strip()
    except FileNotFoundError:
        restored = {home.store_dir.name} if (home.store_dir / "data.mdb").is_file() else set()  # from a backup
        strangers = sorted({entry.name for entry in home.data_dir.iterdir()} - _BROUGHT - restored)
        if strangers:
            raise HomeError(
                f"the directory {home.data_dir} was made by something else (it holds {_some(strangers)}); "
                "set HERMES_HOME to an empty or new directory"
            ) from None
        return
    except UnicodeDecodeError:
        text = "?"
    # An empty marker is a first start that was cut off; it is written again.
    if text not in {"", str(FORMAT)}:
        raise HomeError(
            f"the home {home.data_dir} has layout {text[:20]!r} and this Hermes knows {FORMAT}; "
            "use the Hermes that made it, or another HERMES_HOME"
        )


def _some(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def _make(home: Home) -> None:
    home.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    # The marker comes first, so that a start cut off here finds a home it knows.
    _write_private(home.marker, f"{FORMAT}\n")
    home.log_dir.mkdir(mode=0o700, exist_ok=True)
    home.store_dir.mkdir(mode=0o700, exist_ok=True)


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, text.encode("ascii"))
    finally:
        os.close(descriptor)


class HomeLock:
    """The right to write to a home. It ends with `close`, or with the process, however that ends."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def lock(home: Home) -> HomeLock:
    """Take the home. The directory itself is locked; the file only says by whom, and may be removed without harm."""
    try:
        descriptor = os.open(home.data_dir, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise HomeError(f"the home {home.data_dir} cannot be opened: {error.strerror}") from error
    try:
        _flock(descriptor, home)
        _write_private(home.lock_file, f"{os.getpid()}\n")
    except AlreadyRunningError:
        os.close(descriptor)
        raise
    except OSError as error:
        os.close(descriptor)
        raise HomeError(f"the home {home.data_dir} cannot be locked: {error.strerror}") from error
    return HomeLock(descriptor)


def _flock(descriptor: int, home: Home) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in {errno.EWOULDBLOCK, errno.EACCES}:
            raise
        pid = _holder(home)
        who = f"pid {pid}" if pid else "its pid is not known"
        raise AlreadyRunningError(f"another Hermes runs on {home.data_dir} ({who})", pid=pid) from None


def _holder(home: Home) -> int | None:
    try:
        text = home.lock_file.read_text("ascii", errors="replace").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def is_free(home: Home) -> bool:
    """Whether no Hermes holds the home at this moment."""
    try:
        descriptor = os.open(home.data_dir, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
