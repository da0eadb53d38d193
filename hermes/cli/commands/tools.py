"""`hermes tools`: list the agent's tools, and enable or disable them in the configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.cli.output import print_json, print_table, print_text
from hermes.cli.parser import Commands
from hermes.domain.errors import ConfigError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from hermes.config.schema import Value
    from hermes.config.settings import ToolsConfig

_SURFACES = ("default", "api", "cli", "guest")
_FOR = "only here: default (chats), api, cli, guest"


def add_commands(commands: Commands) -> None:
    tools = commands.add(
        "tools",
        _list,
        "List the tools of the agent, or enable and disable them.",
        examples="  hermes tools\n  hermes tools disable web\n  hermes tools enable web --for api",
        json=True,
    )
    actions = Commands(tools, required=False)
    actions.add("list", _list, "List each tool and where the agent has it.", json=True)
    enable = actions.add("enable", _enable, "Enable a tool or a toolset.", json=True)
    disable = actions.add("disable", _disable, "Disable a tool or a toolset.", json=True)
    for parser in (enable, disable):
        parser.add_argument("tool", metavar="TOOL", help="tool or toolset, as `hermes tools` lists it")
        parser.add_argument("--for", dest="surface", choices=_SURFACES, default="", help=_FOR)
    enable.add_argument("--yes", action="store_true", help="give guests a tool that reaches commands or files")


def _list(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home
    from hermes.config.loader import load_config
    from hermes.config.tool_choice import chosen
    from hermes.config.toolset import TOOLSETS

    loaded = load_config(Home.from_environ(environ), environ)
    config = loaded.tools
    not_offered = {} if loaded.web.search else {"web_search": "web.search_provider"}
    if not loaded.image_gen.base_url:
        not_offered["image_generate"] = "image_gen.base_url"
    has = {surface: chosen(config, surface) for surface in _SURFACES}
    tools = [
        {"tool": tool, "toolset": toolset, **{surface: tool in has[surface] for surface in _SURFACES}}
        for toolset, members in TOOLSETS.items()
        for tool in members
    ]
    if args.json:
        print_json({"tools": tools, "not_offered": list(not_offered)})
        return 0
    rows = [
        [str(each["tool"]), str(each["toolset"]), *("yes" if each[surface] else "-" for surface in _SURFACES)]
        for each in tools
    ]
    print_table(["TOOL", "TOOLSET", "CHATS", "API", "CLI", "GUEST"], rows)
    for tool, setting in not_offered.items():
        print_text(f"{tool} is not offered. Set {setting} to have it.")
    return 0


def _enable(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home
    from hermes.config.loader import load_config
    from hermes.config.tool_choice import enabling, is_off_everywhere, is_risky_for_guests

    config = load_config(Home.from_environ(environ), environ).tools
    if args.surface and is_off_everywhere(config, args.tool):
        raise ConfigError(
            f"{args.tool} is disabled everywhere (tools.disabled); `hermes tools enable {args.tool}` enables it on "
            "every surface that lists it; nothing was changed"
        )
    if args.surface == "guest" and is_risky_for_guests(args.tool) and not args.yes:
        raise ConfigError(
            f"{args.tool} lets every guest reach commands or files of this machine; nothing was changed; --yes "
            "enables it"
        )
    return _change(args, environ, enabling)


def _disable(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.tool_choice import disabling

    return _change(args, environ, disabling)


def _change(
    args: argparse.Namespace,
    environ: Mapping[str, str],
    decide: Callable[[ToolsConfig, str, str], Mapping[str, Value]],
) -> int:
    from hermes.config.editor import plain
    from hermes.config.home import Home, is_free
    from hermes.config.loader import load_config
    from hermes.config.revision import set_settings
    from hermes.config.toolset import complaint_about_tool

    if problem := complaint_about_tool(args.tool):
        raise ConfigError(problem)
    home = Home.from_environ(environ)
    changes = decide(load_config(home, environ).tools, args.tool, args.surface)
    set_settings(home, changes, environ)
    restart = bool(changes) and not is_free(home)
    if args.json:
        values = {name: plain(value) for name, value in changes.items()}
        print_json({"changed": values, "apply_with": "hermes restart" if restart else None})
        return 0
    for name, value in changes.items():
        assert isinstance(value, tuple)
        print_text(f"{name} is {', '.join(value) or 'empty'}.")
    if not changes:
        print_text("Nothing had to be changed.")
    if restart:
        print_text("The running daemon has the old tools: `hermes restart` applies the change.")
    return 0
