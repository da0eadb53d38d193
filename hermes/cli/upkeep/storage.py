"""`hermes storage`: verify, measure, copy and compact the store, through the daemon or under the lock of the home."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.cli.answered import show
from hermes.cli.output import duration, one_line, size
from hermes.cli.parser import Commands
from hermes.cli.progress import progress_bar, working
from hermes.domain.errors import AlreadyRunningError, HomeError, NotRunningError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from hermes.cli.client import AdminClient
    from hermes.config.home import Home

_OF_A_DAEMON = frozenset(
    {"commits", "transactions", "last_commit_s", "commits_took_s"}
)  # counted since the store was opened


def add_commands(commands: Commands) -> None:
    storage = commands.add(
        "storage",
        _stats,
        "Check, measure, copy or compact the store.",
        examples="  hermes storage verify\n  hermes storage backup /backups/monday\n  hermes storage stats --json",
    )
    actions = Commands(storage)
    actions.add("verify", _verify, "Read everything and report damage. Exit code 1 if there is any.", json=True)
    actions.add("stats", _stats, "Show the size and contents of the store.", json=True)
    backup = actions.add(
        "backup", _backup, "Make a consistent copy of the store, also while the daemon runs.", json=True
    )
    backup.add_argument("path", metavar="PATH", help="a new directory for the copy")
    actions.add("compact", _compact, "Return free space to the file system. The daemon must be stopped.", json=True)


def _verify(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home

    home = Home.from_environ(environ)
    with progress_bar("verifying the store", in_bytes=False) as (progress, _):

        def directly(home: Home) -> list[str]:
            from hermes.storage.verify import verify

            return verify(home.store_dir, lambda done, total: progress("verifying the store", done, total))

        def beside(client: AdminClient) -> list[str]:
            if (home.store_dir / "data.mdb").exists():
                client.info()  # the verifier can read the store while the daemon uses it
                return directly(home)
            problems: list[str] = client.get("/store/verify", timeout_s=None)["problems"]
            return problems

        problems = _either(environ, beside, directly)
    show(args, {"problems": problems}, problems or "The store is intact.")
    return 1 if problems else 0


def _stats(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    def directly(home: Home) -> dict[str, Any]:
        from dataclasses import asdict

        from hermes.config.home import has_store
        from hermes.config.loader import load_config
        from hermes.storage.lmdb_engine import LmdbEngine

        map_size_bytes = load_config(home, environ).storage.map_size_mb << 20
        engine = LmdbEngine.open(home.store_dir, map_size_bytes=map_size_bytes, made_before=has_store(home))
        try:
            return {name: value for name, value in asdict(engine.stats()).items() if name not in _OF_A_DAEMON}
        finally:
            engine.close()

    stats = _either(environ, lambda client: client.get("/store"), directly)
    return show(args, stats, lambda: _print_stats(stats))


def _print_stats(stats: Mapping[str, Any]) -> None:
    for name, value in stats.items():
        label = name.removesuffix("_bytes").removesuffix("_s").replace("_", " ")
        print(f"{label + ':':<14} {_figure(name, value)}")


def _figure(name: str, value: Any) -> str:
    if name.endswith("_bytes"):
        return size(value)
    return duration(value) if name.endswith("_s") else one_line(str(value))


def _backup(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from pathlib import Path

    path = Path(args.path).absolute()  # the daemon has another working directory

    def directly(home: Home) -> None:
        from hermes.config.home import has_store
        from hermes.storage.lmdb_engine import LmdbEngine

        engine = LmdbEngine.open(home.store_dir, made_before=has_store(home))
        try:
            engine.backup(path)
        finally:
            engine.close()

    with working("copying the store"):
        _either(environ, lambda client: client.post("/store/backup", {"path": str(path)}, timeout_s=None), directly)
    return show(args, {"path": str(path)}, f"The store was copied to {path}.")


def _compact(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    def refused(client: AdminClient) -> None:
        pid = client.get("/info").get("pid")
        raise AlreadyRunningError(
            f"the daemon (pid {pid}) uses the store; `hermes stop` it first, then compact", pid=pid
        )

    def directly(home: Home) -> tuple[int, int]:
        from hermes.storage.copies import compact

        return compact(home.store_dir)

    with working("compacting the store"):
        before, after = _either(environ, refused, directly)
    answer = {"before_bytes": before, "after_bytes": after}
    return show(args, answer, f"Compacted the store from {size(before)} to {size(after)}.")


def _either(environ: Mapping[str, str], asked: Callable[[AdminClient], Any], directly: Callable[[Home], Any]) -> Any:
    """Ask the daemon, or do it here under the lock of the home."""
    from hermes.cli.client import AdminClient
    from hermes.config.home import Home, check_store, lock

    home = Home.from_environ(environ)
    try:
        return asked(AdminClient(home.socket))
    except NotRunningError:
        if not home.store_dir.is_dir() or not any(home.store_dir.iterdir()):
            raise HomeError(f"nothing is stored in {home.data_dir} yet") from None
        check_store(home)
        with lock(home):
            return directly(home)
