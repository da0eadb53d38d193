"""`hermes plugins`: the installed plugins, and which of them the daemon has loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hermes.cli.answered import show
from hermes.cli.output import print_table, print_text
from hermes.cli.parser import Commands
from hermes.domain.errors import HermesError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping


def add_commands(commands: Commands) -> None:
    group = commands.add(
        "plugins",
        _list,
        "List installed plugins. A plugin is loaded if plugins.enabled names it.",
        examples="  hermes plugins\n  hermes plugins list --json\n  hermes config set plugins.enabled weather",
        json=True,
    )
    Commands(group, required=False).add("list", _list, "List installed plugins, and their problems.", json=True)


def _list(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home
    from hermes.config.loader import load_config
    from hermes.plugin.loader import installed

    enabled = load_config(Home.from_environ(environ), environ).plugins.enabled
    loaded = _loaded(environ)
    found = {each.name: each for each in installed()}
    rows = [_row(name, found.get(name), name in enabled, loaded) for name in dict.fromkeys((*found, *enabled))]
    if not rows:
        return show(args, {"plugins": rows}, "No plugin is installed. docs/plugins.md describes how to write one.")

    def text() -> None:
        headings = ["NAME", "PACKAGE", "VERSION", "STATE", "ADDS"]
        print_table(
            headings, [[each[key] for key in ("name", "package", "version", "state", "adds")] for each in rows]
        )
        for each in rows:
            if each["problem"]:
                print_text(f"{each['name']}: {each['problem']}")

    return show(args, {"plugins": rows}, text)


def _loaded(environ: Mapping[str, str]) -> dict[str, Any] | None:
    """Return what the daemon has loaded, by name; None if no daemon runs."""
    from hermes.cli.client import connect

    try:
        return {each["name"]: each for each in connect(environ).get("/plugins")["plugins"]}
    except HermesError:
        return None


def _row(name: str, found: Any, is_enabled: bool, loaded: Mapping[str, Any] | None) -> dict[str, Any]:
    own = (loaded or {}).get(name)
    if own is not None:
        state = "failed" if own["problem"] else "loaded"
    elif is_enabled:
        state = "enabled" if loaded is None else "enabled, needs a restart"
    else:
        state = "installed"
    problem = own["problem"] if own else "" if found else "it is not installed"
    kinds = ("tools", "commands", "hooks", "platforms")
    adds = [f"{kind}: {', '.join(own[kind])}" for kind in kinds if own[kind]] if own else []
    return {
        "name": name,
        "package": found.package if found else "",
        "version": found.version if found else "",
        "enabled": is_enabled,
        "state": state,
        "adds": "; ".join(adds),
        "problem": problem,
    }
