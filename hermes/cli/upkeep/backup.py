"""`hermes backup` and `hermes restore`: write the home to one archive, and put it back."""

from __future__ import annotations

import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from hermes.cli.answered import confirms, show
from hermes.cli.output import count, moment, one_line, print_table, print_text, size
from hermes.cli.parser import add_file
from hermes.cli.progress import progress_bar
from hermes.domain.errors import AlreadyRunningError, ConfigError, HomeError, NotRunningError
from hermes.domain.text.listing import some

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from hermes.cli.parser import Commands
    from hermes.config.home import Home
    from hermes.upkeep.backup_manifest import Manifest
    from hermes.upkeep.next_step import NextStep
    from hermes.upkeep.restore import Restored
    from hermes.upkeep.store_archive import Progress


LEFT_OUT: Final = {
    "secret": "secret; keep a copy apart from the backup",
    "trust": "trust is given on each machine",
    "log": "log files",
    "rebuilt": "the search index is rebuilt in the background after a restore",
    "runtime": "made again by the next start",
    "earlier": "the state before an earlier restore or migration",
    "unknown_name": "not a file of Hermes",
    "link_outside": "symlink to something outside of its top directory",
    "special_file": "pipe, socket or device",
    "no_permission": "no permission to read it",
    "vanished": "removed while the backup was made",
    "path_too_long": "its path is too long",
    "too_deep": "too many nested directories",
    "read_error": "it could not be read",
    "not_recorded": "the Hermes that made the backup did not record why",
}  # by Reason
STEPS: Final = {
    "replace_files": "These were not in the backup. Put them back if you need them: {paths}",
    "replace_secrets": "The backup holds no secrets. Put these files back into {home} (mode 600): {paths}",
    "keep_backup_key": "The next backup makes a new {home}/backup.key. Keep a copy of it apart from your backups.",
    "pair_again": "Pair people again (`hermes pairing`), and set grants and home channels again.",
    "trust_again": "Approve working directories and prompt files again when Hermes asks, or with `hermes trust`. "
    "The backup does not hold: {paths}",
    "check_and_start": "Run `hermes config check`, then `hermes daemon` or `hermes service start`.",
    "new_api_key": "The first start makes a new API key, {key}. Give it to your clients.",
    "resume_sessions": "Sessions that had open work are suspended. `hermes sessions` lists them, `hermes resume ID` "
    "continues one.",
}  # by StepCode


def add_commands(commands: Commands) -> None:
    backup = commands.add(
        "backup",
        _backup,
        "Back up everything that matters, also while the daemon runs. The archive holds the store, the "
        "configuration,\n"
        "SOUL.md, the folders of conversations and the records of background processes, with checksums. Exit code 1\n"
        "if the store is damaged; the archive is written nevertheless.",
        examples="  hermes backup\n  hermes backup /backups/monday.tar.gz\n  hermes backup --with-key to-move.tar",
        json=True,
    )
    add_file(
        backup,
        "target",
        nargs="?",
        metavar="TARGET",
        help="new file, .tar.gz or .tar (default: hermes-backup-DATE-TIME.tar.gz in this directory)",
    )
    backup.add_argument("--with-key", action="store_true", help="include the API key; keep such an archive secret")
    restore = commands.add(
        "restore",
        _restore,
        "Replace the contents of the home by a backup. The daemon must be stopped. The backup is checked before and\n"
        "after; the old contents are kept beside it.",
        examples="  hermes restore /backups/monday.tar.gz\n  HERMES_HOME=/srv/new hermes restore monday.tar.gz",
        json=True,
    )
    add_file(
        restore, "source", metavar="SOURCE", help="archive of `hermes backup`, or copy of `hermes storage backup`"
    )
    restore.add_argument("--yes", action="store_true", help="use the configuration in the backup without asking")
    restore.add_argument(
        "--untrusted",
        action="store_true",
        help="restore a backup whose HMAC is missing or wrong: conversations and their files only, without "
        "configuration, grants, preferences, pairings, SOUL.md and keys",
    )


# ---------------------------------------------------------------- backup


def _backup(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from pathlib import Path

    from hermes.config.home import Home
    from hermes.upkeep.backup import default_name

    home = Home.from_environ(environ)
    target = Path(args.target or default_name(time.time())).absolute()
    with progress_bar("backup") as (progress, _):
        manifest = _make_backup(home, target, with_key=args.with_key, progress=progress)
    show(args, _backup_report(manifest, target), lambda: _print_backup(manifest, target))
    return 1 if manifest.problems else 0


def _make_backup(home: Home, target: Path, *, with_key: bool, progress: Progress) -> Manifest:
    """Make the backup: the daemon copies the store if it runs, else it is copied here under the lock."""
    from functools import partial

    from hermes.cli.client import AdminClient
    from hermes.config.home import check_store, lock
    from hermes.upkeep.backup import make_backup

    client = AdminClient(home.socket)
    make = partial(
        make_backup,
        home,
        target,
        check_store=_verifier(progress, "checking the copy"),
        with_key=with_key,
        progress=progress,
    )
    try:
        client.info()
    except NotRunningError:
        if not (home.store_dir / "data.mdb").exists():
            check_store(home)
            raise HomeError(f"nothing is stored in {home.data_dir} yet") from None
        from hermes.storage.copies import copy_store

        with lock(home):
            return make(copy_store=lambda place: copy_store(home.store_dir, place), hot=False)
    return make(copy_store=lambda place: client.post("/store/backup", {"path": str(place)}, timeout_s=None), hot=True)


def _backup_report(manifest: Manifest, target: Path) -> dict[str, Any]:
    return {
        "path": str(target),
        "archive_bytes": target.stat().st_size,
        "files": manifest.file_count,
        "size_bytes": manifest.size_bytes,
        "hot": manifest.hot,
        "left_out": [{"path": _shown(each.path), "reason": each.reason.value} for each in manifest.left_out],
        "problems": list(manifest.problems),
    }


def _print_backup(manifest: Manifest, target: Path) -> None:
    files = f"{count(manifest.file_count, 'file')}, {size(manifest.size_bytes)}"
    print_text(f"Backed up to {one_line(str(target))} ({size(target.stat().st_size)}; {files} unpacked).")
    if manifest.left_out:
        rows = [(_shown(each.path), LEFT_OUT[each.reason]) for each in manifest.left_out]
        print_text("Left out:")
        print_table(("PATH", "WHY"), rows)
    if manifest.problems:
        problems = count(len(manifest.problems), "problem")
        print_text(
            f"The store has {problems}; the archive holds it unrepaired. First problem: "
            f"{one_line(manifest.problems[0])}",
            file=sys.stderr,
        )


def _shown(path: str) -> str:
    """Return a path that can be printed: bytes that are not UTF-8 become escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


# ---------------------------------------------------------------- restore


def _restore(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from pathlib import Path

    from hermes.config.home import Home
    from hermes.upkeep.backup_manifest import BackupError
    from hermes.upkeep.next_step import next_steps

    source = Path(args.source).absolute()
    if not source.exists():
        raise BackupError(f"there is no {source}; nothing was changed")
    home = Home.from_environ(environ)
    with progress_bar("restore") as (progress, pause):
        wants_config = _config_question(yes=args.yes, ask=not args.json and sys.stdin.isatty(), pause=pause)
        restored = _restore_home(home, source, progress, wants_config=wants_config, untrusted=args.untrusted)
    new_key = _makes_new_key(home, environ)
    steps = next_steps(restored, {each.name for each in home.data_dir.iterdir()}, new_key=new_key)
    report = _restore_report(restored, home, steps, new_key=new_key)
    return show(args, report, lambda: _print_restore(restored, home, steps))


def _config_question(*, yes: bool, ask: bool, pause: Callable[[], None]) -> Callable[[list[str]], bool]:
    """Return a question that shows the changes of the configuration. Without a terminal the answer is no."""

    def wants(diff: list[str]) -> bool:
        if yes or not ask:
            return yes
        pause()
        print_text("The configuration in the backup differs from the current one:")
        for line in diff:
            print_text("  " + one_line(line))
        return confirms("Use the one in the backup?")

    return wants


def _verifier(progress: Progress, what: str) -> Callable[[Path], list[str]]:
    """Return the check of a store, which reports its progress as bytes, like the other steps."""

    def check(directory: Path) -> list[str]:
        from hermes.storage.env import DATA_FILE
        from hermes.storage.verify import verify

        size = (directory / DATA_FILE).stat().st_size if (directory / DATA_FILE).exists() else 0
        return verify(directory, lambda done, total: progress(what, size * done // total, size))

    return check


def _restore_home(
    home: Home, source: Path, progress: Progress, *, wants_config: Callable[[list[str]], bool], untrusted: bool
) -> Restored:
    from hermes.config.home import lock, prepare
    from hermes.upkeep.backup_manifest import BackupError
    from hermes.upkeep.restore import restore
    from hermes.upkeep.store_archive import UnsealedError

    made = _missing_parts(home)
    prepare(home, restoring=True)
    try:
        held = lock(home)
    except AlreadyRunningError as error:
        raise AlreadyRunningError(f"{error}: run `hermes stop`, then restore again", pid=error.pid) from None
    with held:
        try:
            return restore(
                home,
                source,
                check=_verifier(progress, "checking the store"),
                progress=progress,
                wants_config=wants_config,
                untrusted=untrusted,
            )
        except UnsealedError as error:
            _remove_made(home, made)
            what = "conversations without configuration, grants, preferences and pairings"
            raise BackupError(f"{error}. Nothing was changed; `--untrusted` restores {what}") from None
        except BaseException:
            _remove_made(home, made)
            raise


def _missing_parts(home: Home) -> list[Path]:
    """Return the parts of the home that do not exist yet, the innermost first."""
    needed = (home.store_dir, home.log_dir, home.lock_file, home.marker, home.data_dir, *home.data_dir.parents)
    return [path for path in needed if not path.exists()]


def _remove_made(home: Home, made: list[Path]) -> None:
    """Remove a home that was made for a restore that failed, unless it is in use by now."""
    if home.store_dir not in made:
        return
    with suppress(OSError):  # it is not empty
        for path in made:
            path.rmdir() if path.is_dir() else path.unlink(missing_ok=True)


def _makes_new_key(home: Home, environ: Mapping[str, str]) -> bool:
    """Return whether the next start makes a new API key, which clients then need."""
    from hermes.config.loader import load_config

    if environ.get("HERMES_API_KEY") or home.api_key_file.exists():
        return False
    with suppress(ConfigError):  # the next start reports it
        return not load_config(home, environ).api.key_file
    return True


def _restore_report(restored: Restored, home: Home, steps: Sequence[NextStep], *, new_key: bool) -> dict[str, Any]:
    return {
        "home": str(home.data_dir),
        "made_at": restored.manifest.made_at if restored.manifest else None,
        "restored": list(restored.names),
        "kept_in": str(restored.kept_in) if restored.kept_in else None,
        "open_sessions": list(restored.open_sessions),
        "owed": restored.outgoing,
        "new_key": new_key,
        "problems": list(restored.problems),
        "config": restored.config.value,
        "untrusted": restored.untrusted,
        "next_steps": [{"code": step.code.value, "paths": [_shown(path) for path in step.paths]} for step in steps],
    }


def _print_restore(restored: Restored, home: Home, steps: Sequence[NextStep]) -> None:
    made = f" of {moment(restored.manifest.made_at)}" if restored.manifest else ""
    print_text(f"The backup{made} is in place in {home.data_dir}: {', '.join(restored.names)}.")
    if restored.kept_in:
        print_text(
            f"The old contents are kept in {restored.kept_in}; remove them when you do not need them any more."
        )
    if restored.config.value == "declined":
        print_text(f"The current configuration {home.config_file} was kept; `--yes` uses the one in the backup.")
    if restored.untrusted:
        print_text(
            "The backup is not trusted: its configuration, grants, preferences, pairings and keys were dropped."
        )
    if restored.open_sessions:
        what = f"{count(len(restored.open_sessions), 'session')} had open work when the backup was made"
        print_text(f"{what}, which resumes at the next start: {some(restored.open_sessions)}.", indent="  ")
    if restored.outgoing:
        print_text(
            f"{count(restored.outgoing, 'message')} waited for delivery then and will be sent at the next start."
        )
    for problem in restored.problems:
        print_text(f"The store was damaged when it was backed up: {one_line(problem)}", file=sys.stderr)
    _print_steps(steps, home)


def _print_steps(steps: Sequence[NextStep], home: Home) -> None:
    print_text("Next steps:")
    for number, step in enumerate(steps, 1):
        paths = one_line(", ".join(_shown(path) for path in step.paths))
        print_text(
            f"  {number}. {STEPS[step.code].format(home=home.data_dir, key=home.api_key_file, paths=paths)}",
            indent="   ",
        )
