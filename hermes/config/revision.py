"""Revision of the configuration file: check a new text of it, then replace the file atomically.

The file is whole at every moment: a crash leaves the old one or the new one. Links, modes and comments stay.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hermes.config.editor import with_settings, without_setting
from hermes.config.file import NO_KEY_HERE, did_you_mean
from hermes.config.loader import check_text, parse_text, problems_of
from hermes.config.schema import RETIRED, Value
from hermes.config.settings import SETTINGS, Setting
from hermes.domain.errors import ConfigError
from hermes.domain.values import dataclass
from hermes.system.durable_file import replace_file, sync_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from hermes.config.home import Home


@dataclass(frozen=True, slots=True, kw_only=True)
class Revised:
    before: str  # text of the file
    after: str
    problems: tuple[str, ...] = ()  # mistakes that the file had before and still has

    @property
    def changed(self) -> bool:
        return self.before != self.after


def known_setting(name: str) -> Setting:
    """Return the setting of this name. Raises ConfigError with a suggestion."""
    if (setting := SETTINGS.get(name)) is not None:
        return setting
    if name == "model.api_key":
        raise ConfigError(f"{name}: {NO_KEY_HERE}")
    if name in RETIRED:
        raise ConfigError(f"{name} is no longer a setting")
    raise ConfigError(f"there is no setting {name[:80]!r}{_guess(name)}")


def _guess(name: str) -> str:
    same_key = [each for each in SETTINGS if each.endswith(f".{name.rpartition('.')[2]}")]
    if len(same_key) in {1, 2, 3}:
        return f"; did you mean {' or '.join(same_key)}?"
    return did_you_mean(name, SETTINGS)


def value_of(setting: Setting, words: Sequence[str]) -> Value:
    """Return the value that these words mean: several are the entries of a list. Raises ConfigError."""
    try:
        if len(words) == 1:
            return setting.check(parse_text(setting, words[0]))
        if isinstance(setting.default, tuple):
            return setting.check(tuple(words))
    except ValueError as error:
        raise ConfigError(f"{setting.name}: {error}; nothing was changed") from error
    raise ConfigError(f"{setting.name}: takes one value, found {len(words)}; nothing was changed")


def set_settings(
    home: Home, changes: Mapping[str, Value], environ: Mapping[str, str], *, repair: bool = False
) -> Revised:
    """Write these settings. Raises ConfigError, and changes nothing, if the result is not valid."""
    return revise(home, environ, lambda text: with_settings(text, changes), repair=repair)


def unset_setting(home: Home, name: str, environ: Mapping[str, str]) -> Revised:
    """Remove a setting or section, known or not. Raises ConfigError, and changes nothing, for a new mistake."""
    return revise(home, environ, lambda text: without_setting(text, name), repair=True)


def revise(home: Home, environ: Mapping[str, str], edit: Callable[[str], str], *, repair: bool = False) -> Revised:
    """Edit the text of the file, check it as a daemon of this environment would, and write it.

    A repair may leave mistakes that the file had before.
    """
    before = read_text(home)
    after = edit(before)
    left = _remaining(before, after, home, environ) if repair else ()
    revised = Revised(before=before, after=after, problems=left)
    if revised.changed:
        if not left:
            check_text(after, home, environ)
        home.config_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if read_text(home) != before:
            raise ConfigError(f"{home.config_file} was changed by another program meanwhile; try again")
        write_private(home.config_file, revised.after)
    return revised


def _remaining(before: str, after: str, home: Home, environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the mistakes of the new text if the old text had all of them; else nothing."""
    known = set(map(_without_place, problems_of(before, home, environ)))
    left = problems_of(after, home, environ)
    return left if known.issuperset(map(_without_place, left)) else ()


def _without_place(problem: str) -> str:
    return re.sub(r"^/.*?:\d+:\d+: ", "", problem)


def read_text(home: Home) -> str:
    """Return the text of the file; empty if there is none. Raises ConfigError."""
    try:
        return home.config_file.read_text("utf-8")
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError as error:
        raise ConfigError(f"{home.config_file} is not UTF-8; `hermes config check` reports where") from error


def write_private(path: Path, text: str, *, secret: bool = False) -> None:
    """Replace a file atomically. A new file is private; an existing one keeps its mode, unless it holds a secret."""
    path = path.resolve()  # keep the link if it is one
    mode = path.stat().st_mode & 0o777 if path.exists() and not secret else 0o600
    replace_file(path, text, mode=mode)
    sync_directory(path.parent)
