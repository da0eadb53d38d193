"""Secrets: a wrapper that hides its text, secret files, and the API key created at the first start.

A secret comes from the environment or from a file, never from the configuration itself. No error message here
contains any part of a secret; only `Secret.reveal` returns it.
"""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.domain.errors import ConfigError
from hermes.system.durable_file import sync_directory
from hermes.system.regular_file import read_regular_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.config.home import Home
    from hermes.config.loader import Config

_MIN_API_KEY = 16  # characters
_MAX_FILE = 65_536  # bytes; a larger file is not a key


class Secret:
    """Text that must not appear in a log, a traceback or on a screen by accident."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"


def read_secret_file(path: Path, setting: str) -> Secret:
    """Return the only line of the file. `setting` is named in errors."""
    try:
        raw = read_regular_file(path, max_bytes=_MAX_FILE)
    except FileNotFoundError:
        raise ConfigError(f"{setting}: there is no file {path}; create it with the key and run `chmod 600`") from None
    except OSError as error:
        raise ConfigError(f"{setting}: {path} cannot be read: {error.strerror}") from error
    if len(raw) > _MAX_FILE:
        raise ConfigError(f"{setting}: {path} is too large to be a key")
    return usable(raw.decode("utf-8", "replace").strip(), f"{setting}: the key in {path}")


def usable(value: str, what: str) -> Secret:
    """Check that a key can be sent in an HTTP header, and return it."""
    if not value:
        raise ConfigError(f"{what} is empty")
    if not (value.isascii() and value.isprintable() and " " not in value):
        raise ConfigError(f"{what} must be printable ASCII characters on one line, without spaces")
    return Secret(value)


def api_key_path(home: Home, config: Config) -> Path:
    return Path(config.api.key_file) if config.api.key_file else home.api_key_file


def given_api_key(environ: Mapping[str, str]) -> Secret | None:
    """Return the key of the environment, or None. Raises ConfigError if it is not valid."""
    given = environ.get("HERMES_API_KEY")
    if given is None:
        return None
    return _long_enough(usable(given, "HERMES_API_KEY"), "HERMES_API_KEY", "set a longer one or unset it")


def ensure_api_key(home: Home, config: Config, environ: Mapping[str, str]) -> Secret:
    """Return the API key. The key file of the home is created if it is missing, another file is not."""
    given = given_api_key(environ)
    if given is not None:
        return given
    path = api_key_path(home, config)
    return _make_key_file(path) if _is_to_be_made(home, path) else _kept(path)


def check_api_key(home: Home, config: Config, environ: Mapping[str, str]) -> None:
    """Raise ConfigError if `ensure_api_key` would, and create nothing."""
    if given_api_key(environ) is None and not _is_to_be_made(home, path := api_key_path(home, config)):
        _kept(path)


def _is_to_be_made(home: Home, path: Path) -> bool:
    return path == home.api_key_file and not os.path.lexists(path)


def _kept(path: Path) -> Secret:
    remedy = "write a longer one, or remove the file: a new one is created"
    return _long_enough(_read_private(path), f"the API key in {path}", remedy)


def _read_private(path: Path) -> Secret:
    try:
        mode = path.stat().st_mode
    except OSError:
        mode = 0  # reading it reports the problem
    if stat.S_ISREG(mode) and mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"the API key file {path} is readable by other users; run `chmod 600 {path}`")
    return read_secret_file(path, "api.key_file")


def _long_enough(key: Secret, what: str, remedy: str) -> Secret:
    if len(key.reveal()) < _MIN_API_KEY:
        raise ConfigError(f"{what} has fewer than {_MIN_API_KEY} characters; {remedy}")
    return key


def ensure_secret_file(path: Path) -> Secret:
    """Return the secret in a private file of the home, which is created if it is missing."""
    return _read_private(path) if os.path.lexists(path) else _make_key_file(path)


def _make_key_file(path: Path) -> Secret:
    """Create a key file atomically: a crash must not leave an empty key."""
    key = secrets.token_urlsafe(32)
    draft = path.with_name(f"{path.name}.new")
    try:
        draft.unlink(missing_ok=True)  # left by an interrupted first start
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - a descriptor has no path
            file.write(f"{key}\n".encode())
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)  # unlike a rename, never replaces a key
        draft.unlink()
        sync_directory(path.parent)
    except OSError as error:
        raise ConfigError(f"the API key file {path} cannot be created: {error.strerror}") from error
    return Secret(key)
