"""`hermes config get`, `set`, `unset` and `edit`: read and change the configuration file. Comments and order stay."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import show
from hermes.cli.output import print_json, print_text
from hermes.domain.errors import ConfigError, HermesError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from pathlib import Path

    from hermes.cli.parser import Commands
    from hermes.config.home import Home
    from hermes.config.revision import Revised
    from hermes.config.schema import Value
    from hermes.config.settings import Setting

_EDITORS = ("sensible-editor", "nano", "vi")
_TERMINAL_EDITORS = frozenset({*_EDITORS, "vim", "nvim", "emacs", "micro", "helix", "hx", "joe", "pico"})
_NEW_FILE = "# Settings of Hermes: sections with keys. `hermes config show` lists all settings and their values.\n"


def add_edits(actions: Commands) -> None:
    get = actions.add(
        "get",
        _get,
        "Print the value of a setting, or of all settings of a section.",
        examples="  hermes config get model.name\n  hermes config get model --json",
        json=True,
    )
    get.add_argument("key", metavar="KEY", help="section.setting, or a section")
    change = actions.add(
        "set",
        _set,
        "Write a setting into the configuration file. The result is checked first; comments and order stay. Several "
        "values, values with commas, or [a, b] make a list. Mistakes that the file has already do not prevent it.",
        examples="  hermes config set model.name tiny-1\n  hermes config set tools.disabled web,terminal\n"
        '  hermes config set tools.disabled ""',
        json=True,
    )
    change.add_argument("key", metavar="KEY", help="section.setting")
    change.add_argument("value", metavar="VALUE", nargs="+")
    unset = actions.add(
        "unset",
        _unset,
        "Remove a setting from the configuration file, so that its default applies.",
        examples="  hermes config unset model.name\n  hermes config unset api.prot",
        json=True,
    )
    unset.add_argument("key", metavar="KEY", help="section.setting")
    actions.add(
        "edit",
        _edit,
        "Edit the configuration file in your editor ($VISUAL or $EDITOR). An invalid result is not saved.",
        examples="  hermes config edit",
    )


# ---------------------------------------------------------------- get


def _get(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home
    from hermes.config.loader import explain_config
    from hermes.config.revision import known_setting
    from hermes.config.settings import SECTIONS, SETTINGS

    is_section = args.key in SECTIONS
    chosen = [each for each in SETTINGS.values() if each.section == args.key] if is_section else []
    chosen = chosen or [known_setting(args.key)]
    config, sources = explain_config(Home.from_environ(environ), environ)
    found = [_found(each, config.value(each.name), sources.get(each.name, "default")) for each in chosen]
    if args.json:
        print_json({args.key: found} if is_section else found[0])
        return 0
    for each in found:
        print(f"{each['key']}={_plain(each['value'])}" if is_section else _plain(each["value"]))
    return 0


def _found(setting: Setting, value: Value, source: str) -> dict[str, Any]:
    from hermes.config.editor import plain

    return {
        "key": setting.name,
        "value": plain(value),
        "default": plain(setting.default),
        "source": source,
        "live": setting.rule.live,
    }


def _plain(value: Any) -> str:
    """Return a value as `hermes config set` takes it."""
    if isinstance(value, list):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


# ---------------------------------------------------------------- set, unset


def _set(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home
    from hermes.config.revision import known_setting, set_settings, value_of

    home, setting = Home.from_environ(environ), known_setting(args.key)
    value = value_of(setting, args.value)
    revised = set_settings(home, {setting.name: value}, environ, repair=True)
    return _report(args, environ, home, setting, revised=revised, value=value)


def _unset(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home
    from hermes.config.revision import known_setting, unset_setting
    from hermes.config.settings import SECTIONS, SETTINGS

    home = Home.from_environ(environ)
    if args.key in SECTIONS or args.key.count(".") > 1:
        known_setting(args.key)
    revised = unset_setting(home, args.key, environ)
    if args.key in SETTINGS:
        setting = SETTINGS[args.key]
        return _report(args, environ, home, setting, revised=revised, value=setting.default)
    if not revised.changed:
        known_setting(args.key)  # neither in the file nor known
    answer = {"key": args.key, "changed": True, "path": str(home.config_file), "problems": list(revised.problems)}
    return show(args, answer, [f"{args.key} was removed; it is not a setting.", *_left(revised)])


def _left(revised: Revised) -> list[str]:
    if not revised.problems:
        return []
    return ["The file still has these mistakes:", *(f"  {each}" for each in revised.problems)]


def _report(
    args: argparse.Namespace,
    environ: Mapping[str, str],
    home: Home,
    setting: Setting,
    *,
    revised: Revised,
    value: Value,
) -> int:
    from hermes.config.editor import plain
    from hermes.config.home import is_free

    changed = revised.changed
    override = setting.variable if setting.variable in environ else None
    apply = None if is_free(home) or not changed else "hermes reload" if setting.rule.live else "hermes restart"
    lines = [f"{setting.name} is {_plain(plain(value)) or 'empty'}{'' if changed else ', as before'}."]
    if override:
        lines.append(f"The environment variable {override} of this shell overrides the file.")
    lines += _left(revised)
    if apply and not revised.problems:
        lines.append(f"The running daemon has the old value: `{apply}` applies the new one.")
    facts = {"key": setting.name, "value": plain(value), "changed": changed, "path": str(home.config_file)}
    facts["problems"] = list(revised.problems)
    return show(args, {**facts, "overridden_by": override, "apply_with": apply}, lines)


# ---------------------------------------------------------------- edit


class _DraftKeptError(HermesError):
    exit_code = 78


class NoTerminalError(HermesError):
    """The command needs a terminal."""

    code = "no_terminal"
    exit_code = 2


def _edit(_args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home
    from hermes.config.revision import read_text, revise, write_private

    editor = _editor(environ)
    home = Home.from_environ(environ)
    before = read_text(home)
    home.config_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = home.config_file.with_name(f"{home.config_file.name}.draft")
    if not draft.exists():
        write_private(draft, before or _NEW_FILE, secret=True)
    while True:
        _run_editor(draft, editor)
        edited = partial(_replaced, before=before, text=draft.read_text("utf-8"))
        try:
            revised = revise(home, environ, edited)
        except ConfigError as error:
            if not _wants_again(error, draft):
                raise _DraftKeptError(
                    f"nothing was changed; your text is in {draft}, and the next `hermes config edit` continues it"
                ) from error
            continue
        draft.unlink()
        print_text("The configuration is valid and saved." if revised.changed else "Nothing was changed.")
        if revised.changed and _daemon_runs(home):
            print_text("`hermes reload` applies it, and reports what needs a restart.")
        return 0


def _replaced(now: str, *, before: str, text: str) -> str:
    if now != before:
        raise ConfigError("the configuration file has changed while you edited it")
    return before if text == _NEW_FILE and not before else text


def _daemon_runs(home: Home) -> bool:
    from hermes.config.home import is_free

    return not is_free(home)


def _wants_again(error: ConfigError, draft: Path) -> bool:
    print_text(f"hermes: {error}", file=sys.stderr)
    if not sys.stdin.isatty():
        return False
    try:
        return input(f"Edit {draft.name} again? [Y/n] ").strip().lower() not in {"n", "no"}
    except EOFError:
        print()
        return False


def _editor(environ: Mapping[str, str]) -> str:
    """Return the command of the editor. Raises ConfigError if there is none, NoTerminalError if it would hang."""
    chosen = environ.get("VISUAL") or environ.get("EDITOR") or next(filter(shutil.which, _EDITORS), "")
    if not chosen:
        raise ConfigError("there is no editor: set EDITOR, or use `hermes config set`")
    if os.path.basename(shlex.split(chosen)[0]) in _TERMINAL_EDITORS and not sys.stdin.isatty():  # noqa: PTH119
        raise NoTerminalError("`hermes config edit` needs a terminal; use `hermes config set`")
    return chosen


def _run_editor(file: Path, chosen: str) -> None:
    import subprocess

    try:
        done = subprocess.run([*shlex.split(chosen), os.fspath(file)], check=False)  # noqa: S603 - the person's editor
    except OSError as error:
        raise ConfigError(f"the editor {chosen!r} cannot be started: {error.strerror}; set EDITOR") from error
    if done.returncode:
        raise ConfigError(f"the editor {chosen!r} failed (exit code {done.returncode}); nothing was changed")
