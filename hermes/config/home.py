"""Home directory of Hermes: its paths, its checks, and the lock that allows one daemon.

With `$HERMES_HOME` everything is under it; else the data and config directories of the platform are used. Nothing is
written before every check has passed, and a directory of another program is never changed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

from hermes.domain.errors import AlreadyRunningError, HomeError
from hermes.domain.values import dataclass
from hermes.system.durable_file import sync_directory, sync_file

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = 1  # version of the home's layout, stored in its marker
_MARKER = ".hermes-home"
_STORE_MADE = "store"  # in the marker's second line
# Allowed before the first start: put there by a person, or by a first start that was interrupted.
_BROUGHT = frozenset(
    {
        *("config.yaml", "api.key", "backup.key", "service.env", "skills", "scripts", "hooks", "BOOT.md", "SOUL.md"),
        f"{_MARKER}.new",
    }
)
_MAX_SOCKET_PATH = 107  # bytes; 108 in the kernel with the final NUL


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    data_dir: Path
    config_file: Path

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Self:
        if given := environ.get("HERMES_HOME"):
            data_dir = _real(given)
            _check_name(data_dir)
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
    def skills_dir(self) -> Path:
        return self.data_dir / "skills"

    @property
    def media_dir(self) -> Path:
        return self.data_dir / "media"

    @property
    def lock_file(self) -> Path:
        return self.data_dir / "hermes.lock"

    @property
    def marker(self) -> Path:
        return self.data_dir / _MARKER


def _real(path: str) -> Path:
    # Unlike Path.resolve this does not raise on a loop of links: the checks report it.
    return Path(os.path.realpath(os.path.expanduser(path)))  # noqa: PTH111


def _check_name(path: Path) -> None:
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise HomeError(f"the home {str(path)!a} is not valid UTF-8; set HERMES_HOME to a path that is") from None
    if os.path.exists(path) and not path.is_dir():  # noqa: PTH110 - never raises
        raise HomeError(f"HERMES_HOME is {path}, which is not a directory; set it to a directory")


def prepare(home: Home, *, restoring: bool = False) -> None:
    """Create the home, or check it. Raises HomeError before anything is written.

    `restoring` accepts a home whose store is missing.
    """
    try:
        check(home, restoring=restoring)
        _make(home)
    except OSError as error:
        problem = error.strerror or str(error)
        raise HomeError(f"the home {home.data_dir} cannot be used: {problem} ({error.filename})") from error


def check(home: Home, *, restoring: bool = False) -> None:
    """Check the home, which need not exist. Raises HomeError, OSError. Writes nothing."""
    _check_socket_path(home)
    if _exists(home.data_dir):
        _check_directory(home.data_dir)
        _check_ours(home)  # first: do not advise changes to another program's directory
        _check_owner(home.data_dir)
        _check_private(home)
        if not restoring:
            check_store(home)


def _check_socket_path(home: Home) -> None:
    size = len(os.fsencode(home.socket))
    if size > _MAX_SOCKET_PATH:
        raise HomeError(
            f"the path of the admin socket {home.socket} has {size} bytes; Unix sockets allow "
            f"{_MAX_SOCKET_PATH}; set HERMES_HOME to a shorter directory"
        )


def _exists(path: Path) -> bool:
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


def _check_directory(path: Path) -> None:
    if not path.is_dir():
        raise HomeError(f"the home {path} is not a directory; set HERMES_HOME to a directory")
    if not os.access(path, os.R_OK | os.X_OK):  # its contents are unknown
        _check_owner(path)
        raise HomeError(f"the home {path} cannot be read; set HERMES_HOME to a directory of your own")


def _check_owner(path: Path) -> None:
    if (owner := path.stat().st_uid) != os.geteuid():
        raise HomeError(
            f"the home {path} belongs to uid {owner}, but this process has uid {os.geteuid()}; "
            "run Hermes as its owner or set HERMES_HOME to a directory of your own"
        )


def _check_private(home: Home) -> None:
    """Return advice to close the home, if it is ours: chmod on another directory might break its users."""
    path, mode = home.data_dir, home.data_dir.stat().st_mode
    ours = _exists(home.marker) and not mode & stat.S_ISVTX
    remedy = f"run `chmod 700 {shlex.quote(str(path))}` or " if ours else ""
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise HomeError(f"other users can write to the home {path}; {remedy}set HERMES_HOME to a new directory")
    if not os.access(path, os.W_OK):
        raise HomeError(f"the home {path} is not writable; {remedy}set HERMES_HOME to another directory")


def _check_ours(home: Home) -> None:
    try:
        text = _marker_lines(home)[0]
    except FileNotFoundError:
        restored = {home.store_dir.name} if (home.store_dir / "data.mdb").is_file() else set()  # from a backup
        strangers = sorted({entry.name for entry in home.data_dir.iterdir()} - _BROUGHT - restored)
        if strangers:
            raise HomeError(
                f"the directory {home.data_dir} belongs to another program (it holds {_some(strangers)}); "
                "set HERMES_HOME to an empty or new directory"
            ) from None
        return
    # An empty marker is left by an interrupted first start; it is written again.
    if text in {"", str(FORMAT)}:
        return
    if not text.isdecimal():
        marker = shlex.quote(str(home.marker))
        content = f"{FORMAT}\\n" + (f"{_STORE_MADE}\\n" if (home.store_dir / "data.mdb").is_file() else "")
        raise HomeError(
            f"the marker {home.marker} is damaged: it holds {text[:20]!r} instead of a layout number; "
            f"if this is your Hermes home, run `printf '{content}' > {marker}`, "
            "else set HERMES_HOME to another directory"
        )
    if text != str(FORMAT):
        raise HomeError(
            f"the home {home.data_dir} has layout {text[:20]!r}, but this Hermes supports {FORMAT}; "
            "use the version that created it, or set another HERMES_HOME"
        )


def _marker_lines(home: Home) -> list[str]:
    """Return the text of the marker: the layout and, once it exists, a note about the store."""
    return home.marker.read_text("ascii", errors="replace").strip().split("\n")


def has_store(home: Home) -> bool:
    """Return whether a store was created here."""
    try:
        return _STORE_MADE in _marker_lines(home)
    except OSError:
        return False


def note_store(home: Home) -> None:
    """Note that a store was created: from now on it must exist."""
    if _STORE_MADE not in _marker_lines(home):
        _write_marker(home, f"{FORMAT}\n{_STORE_MADE}\n")


def check_store(home: Home) -> None:
    """Raise HomeError if the store is missing, instead of creating an empty one."""
    data = home.store_dir / "data.mdb"
    try:
        if _STORE_MADE not in _marker_lines(home) or (_exists(data) and data.stat().st_size):
            return
    except OSError:  # other checks report it
        return
    what = "is empty" if _exists(data) else "is missing"
    raise HomeError(
        f"the store of this home {what} ({data}): put it back, or run `hermes restore BACKUP`; "
        f"to start with an empty store, run `echo {FORMAT} > {shlex.quote(str(home.marker))}`"
    )


def _some(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def _make(home: Home) -> None:
    home.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    is_new = not _exists(home.marker) or not home.marker.stat().st_size
    if is_new:
        home.data_dir.chmod(0o700)  # it may be created by another process meanwhile
        # The marker comes first, so that the next start recognises a home whose creation was interrupted.
        _write_marker(home, f"{FORMAT}\n")
    home.log_dir.mkdir(mode=0o700, exist_ok=True)
    home.store_dir.mkdir(mode=0o700, exist_ok=True)
    if is_new:
        sync_directory(home.data_dir)
        with suppress(PermissionError):  # no permission to read the parent
            sync_directory(home.data_dir.parent)


def _write_marker(home: Home, text: str) -> None:
    """Write the marker atomically: a power cut must not leave half of it."""
    draft = home.marker.with_name(f"{_MARKER}.new")
    _write_private(draft, text)
    sync_file(draft)
    draft.replace(home.marker)
    sync_directory(home.data_dir)


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK, 0o600)
    try:
        os.write(descriptor, text.encode("ascii"))
    finally:
        os.close(descriptor)


class HomeLock:
    """Lock of a home. It is released by `close`, or when the process ends."""

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
    """Lock the home. The directory itself is locked; the lock file only holds the pid and may be removed."""
    try:
        descriptor = os.open(home.data_dir, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise HomeError(f"the home {home.data_dir} cannot be opened: {error.strerror}") from error
    try:
        _flock(descriptor, home)
        with suppress(OSError):  # a full disk: the pid is unknown, the lock works nevertheless
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
        pid = holder(home)
        who = f"pid {pid}" if pid else "pid unknown"
        raise AlreadyRunningError(f"another Hermes runs on {home.data_dir} ({who})", pid=pid) from None


def holder(home: Home) -> int | None:
    """Return the pid of the last process that locked the home, if known."""
    try:
        text = home.lock_file.read_text("ascii", errors="replace").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None


def is_free(home: Home) -> bool:
    """Return whether no process holds the lock of the home."""
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
