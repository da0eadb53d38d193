"""Checks of the home directory: existence, permissions, left-over socket, configuration and store."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, cast

from hermes.cli.doctor.finding import CheckResult, Subject, failed, ok, repaired, sentence, skipped, warning
from hermes.cli.output import count, size
from hermes.domain.errors import ConfigError, HermesError, HomeError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hermes.domain.read.reader import Reader

_PRIVATE = ("api.key", "admin.token", "service.env", "backup.key", "telegram.token", "slack.token", "model.key")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_SESSIONS = 200  # newest ones, whose rows are read


def check_home(subject: Subject) -> Iterator[CheckResult]:
    from hermes.config.home import check, prepare

    home = subject.home
    try:
        if not home.data_dir.exists() and not subject.fix:
            yield warning(
                "home.directory", f"There is no home at {home.data_dir} yet.", "The first start creates it."
            )
            return
        check(home)
        lacking = [each for each in (home.data_dir, home.log_dir, home.store_dir) if not each.exists()]
        if lacking and subject.fix:
            prepare(home)
            yield repaired("home.directory", f"Created {', '.join(map(str, lacking))}.")
        elif lacking:
            names = ", ".join(each.name for each in lacking)
            yield warning("home.directory", f"{home.data_dir} lacks {names}.", "Run `hermes doctor --fix`.")
        else:
            yield ok("home.directory", f"The home is {home.data_dir}.")
    except (HomeError, OSError) as error:
        yield failed("home.directory", f"{error}.", "Follow the advice, then run `hermes doctor` again.")


def check_permissions(subject: Subject) -> Iterator[CheckResult]:
    home = subject.home
    if not home.marker.exists():
        yield skipped("home.permissions", "Not checked: there is no home yet.")
        return
    files = (*(home.data_dir / name for name in _PRIVATE), home.config_file.parent / "service.env")
    wide = [path for path in dict.fromkeys((home.data_dir, *files)) if path.exists() and _is_open(path)]
    if not wide:
        yield ok("home.permissions", "Only you can read the home and its keys.")
    elif not subject.fix:
        names = ", ".join(map(str, wide))
        yield failed("home.permissions", f"Other users can access {names}.", "Run `hermes doctor --fix`.")
    else:
        for path in wide:
            path.chmod(stat.S_IMODE(path.stat().st_mode) & ~_OTHERS)
        yield repaired("home.permissions", f"Closed {', '.join(map(str, wide))} to other users.")


def _is_open(path: Path) -> bool:
    """Return whether others can read a key, or change the directory. They may enter the directory."""
    unwanted = stat.S_IWGRP | stat.S_IWOTH if path.is_dir() else _OTHERS
    return bool(path.stat().st_mode & unwanted)


def check_leftovers(subject: Subject) -> Iterator[CheckResult]:
    from hermes.config.home import holder, is_free

    home = subject.home
    if not is_free(home):
        yield ok("home.lock", f"A daemon holds the home (pid {holder(home)}).")
        return
    left = [path for path in (home.socket, home.lock_file) if path.exists()]
    if not left or not home.socket.exists():
        yield ok("home.lock", "No daemon holds the home.")
    elif not subject.fix:
        text = f"A daemon that ended left {home.socket.name} behind."
        yield warning("home.lock", text, "The next start replaces it; `hermes doctor --fix` removes it.")
    else:
        for path in left:
            path.unlink(missing_ok=True)
        yield repaired("home.lock", f"Removed {', '.join(path.name for path in left)} of a daemon that ended.")


def check_config(subject: Subject) -> Iterator[CheckResult]:
    from hermes.cli.commands.config import cleared, doubts
    from hermes.config.home import is_free

    home = subject.home
    try:
        found, warnings = cleared(home, subject.environ)
    except ConfigError as error:
        remedy = "Correct it with `hermes config edit` or `hermes config set`."
        if error.missing_variables and not is_free(home):
            remedy = "The running daemon has variables of its own: `hermes reload` checks with those."
            yield warning("config.valid", sentence(error), remedy)
        else:
            yield failed("config.valid", sentence(error), remedy)
        return
    warnings += doubts(found, subject.environ)
    if warnings:
        yield warning("config.valid", f"{'; '.join(warnings)}.", "Correct it with `hermes config edit`.")
    else:
        source = home.config_file if home.config_file.exists() else "the defaults; there is no file"
        yield ok("config.valid", f"The configuration is valid ({source}).")


def check_store(subject: Subject) -> Iterator[CheckResult]:
    from hermes.storage.lmdb_reader import open_reader

    home = subject.home
    data = home.store_dir / "data.mdb"
    if not data.exists():
        yield skipped("store.open", "There is no store yet.")
        return
    try:
        with open_reader(home.store_dir) as reader:
            if reader is None:
                yield skipped("store.open", "The store is empty.")
                return
            sessions = len(reader.recent(_SESSIONS))
            dead = len(cast("Reader", reader).dead_letters())
    except (HermesError, OSError) as error:
        remedy = "`hermes storage verify` reads everything; `hermes restore BACKUP` brings a backup back."
        yield failed("store.open", f"The store cannot be read: {error}.", remedy)
        return
    read = f"{count(sessions, 'session')}{' or more' if sessions == _SESSIONS else ''}"
    yield ok("store.open", f"The store can be read: {size(data.stat().st_size)}, {read}.")
    if dead:
        text = f"{count(dead, 'message')} could not be processed or delivered."
        yield warning(
            "store.dead_letters", text, "`hermes dead-letters` lists them, tries them again, and deletes them."
        )
