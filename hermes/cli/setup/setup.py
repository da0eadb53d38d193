"""`hermes setup`, and the tokens of a chat platform: ask for them, check them there, write the configuration.

A token is never printed and never in the configuration: it is stored in a file that only its owner can read. Nothing
is written before the platform has accepted the tokens.
"""

from __future__ import annotations

import sys
from dataclasses import field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from hermes.cli.answered import typed
from hermes.cli.output import one_line, print_json, print_text
from hermes.cli.parser import Commands
from hermes.config.platforms import PLATFORMS
from hermes.config.platforms.slack import SLACK
from hermes.domain.errors import ConfigError, HermesError
from hermes.domain.values import dataclass

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from pathlib import Path

    from hermes.cli.setup.platform_check import PlatformSetup, Token
    from hermes.config.home import Home
    from hermes.config.schema import Value
    from hermes.config.settings import Config

_TRIES = 3
_RESTART_S = 60.0


def add_commands(commands: Commands) -> None:
    setup = commands.add(
        "setup",
        _setup,
        "Set up Hermes: model, tools, chat platforms and service, or only one chat platform. Every answer is checked "
        "before it is written, and nothing is replaced without asking. Without a terminal, the model comes from the "
        "options and the environment, and the tokens of a platform from stdin, one per line.",
        examples="  hermes setup\n  hermes setup --non-interactive --provider anthropic --model claude-sonnet-4-5\n"
        "  hermes setup telegram\n  hermes setup telegram --allow 77 < token.txt\n"
        "  hermes setup slack --transport http",
        json=True,
    )
    setup.add_argument("platform", nargs="?", choices=tuple(PLATFORMS), help="set up only this chat platform")
    setup.add_argument("--non-interactive", action="store_true", help="ask nothing")
    setup.add_argument("--provider", default="", metavar="NAME", help="provider of the model (see docs/models.md)")
    setup.add_argument("--model", default="", metavar="NAME", help="name of the model")
    setup.add_argument(
        "--api-key-env", metavar="VARIABLE", help='variable with the key of the model; "" if it needs none'
    )
    setup.add_argument(
        "--api-key-file", default="", metavar="FILE", help="file with the key of the model, to be copied"
    )
    setup.add_argument("--force", action="store_true", help="replace a model that is set up already")
    setup.add_argument("--allow", action="append", default=[], metavar="ID", help="user who can talk to the bot")
    setup.add_argument(
        "--admin",
        action="append",
        default=[],
        metavar="ID",
        help="user who can also approve tool calls and restart the daemon",
    )
    setup.add_argument(
        "--base-url",
        default="",
        metavar="URL",
        help="base URL of the model or of the platform's API (default: the official one)",
    )
    setup.add_argument(
        "--transport", choices=("socket", "http"), help="how Slack delivers messages (default: the configured one)"
    )
    setup.add_argument(
        "--restart",
        action="store_true",
        help="restart a running daemon after the set-up of a platform; not with --json",
    )
    setup.add_argument("--no-hello", action="store_true", help="do not send a message to these users")


def _setup(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    if args.platform:
        return _set_up_platform(args, environ)
    import argparse

    from hermes.cli.setup.wizard import run_wizard

    def set_up_platform(name: str) -> int:
        return _set_up_platform(argparse.Namespace(**{**vars(args), "platform": name, "base_url": ""}), environ)

    return run_wizard(args, environ, set_up_platform)


def _offers_restart(args: argparse.Namespace, walk: PlatformSetup, home: Home) -> bool:
    from hermes.config.home import is_free

    wanted = (args.restart or sys.stdin.isatty()) and not args.json
    return wanted and not is_free(home) and not _is_missing(walk)


def _restart(args: argparse.Namespace, home: Home) -> int:
    """Restart the running daemon, with the option or after a yes, so that it connects to the platform."""
    if not args.restart and _typed("Restart the daemon now? [Y/n] ").lower() not in ("", "y", "yes"):
        print_text("Next: run `hermes restart`.")
        return 0
    import argparse

    from hermes.cli.daemon_stop import restart_daemon

    wishes = argparse.Namespace(timeout=_RESTART_S, reason=f"set-up of {args.platform}", json=False)
    return restart_daemon(wishes, home)


def _set_up_platform(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.editor import with_settings
    from hermes.config.home import Home, prepare
    from hermes.config.loader import check_text, load_config
    from hermes.config.revision import read_text, set_settings, write_private
    from hermes.config.settings import SETTINGS

    home = Home.from_environ(environ)
    now = load_config(home, environ)
    walk, transport = _way(args, now)
    if f"{walk.name}.enabled" not in SETTINGS:
        raise ConfigError(f"this Hermes has no adapter for {walk.title}")
    base_url = (args.base_url or walk.base_url).rstrip("/")
    for option, setting, people in (("--allow", "allowed_users", args.allow), ("--admin", "admins", args.admin)):
        for person in people:
            if problem := _complaint(walk, setting, person):
                raise ConfigError(f"{option} {one_line(person)}: {problem}")
    asks = sys.stdin.isatty()
    if asks:
        _say_what_is_missing(walk)  # first, because the setup needs it
        print_text(walk.advice)
    given = (
        _ask_for_slack(walk, now, base_url, transport, asks=asks) if transport else _ask(walk, base_url, asks=asks)
    )
    allowed = args.allow
    admins = args.admin or (_ask_for_person(walk) if asks and not allowed else [])
    prepare(home)
    changes = _changes(walk, home, now, allowed=allowed, admins=admins, base_url=args.base_url)
    if args.transport:
        changes["slack.transport"] = args.transport
    check_text(with_settings(read_text(home), changes), home, environ)  # before the token is stored
    write_private(_token_file(walk, home), given.file, secret=True)
    set_settings(home, changes, environ)
    greeted = {} if args.no_hello else _greet(walk, base_url, given.first, [*allowed, *admins])
    _tell(args, walk, home, given, greeted)
    return _restart(args, home) if _offers_restart(args, walk, home) else 0


def _way(args: argparse.Namespace, now: Config) -> tuple[PlatformSetup, str]:
    """Return the setup of the platform, and the transport if it has several."""
    walks = import_module(PLATFORMS[args.platform].set_up_by)
    if args.platform != SLACK.name:
        if args.transport:
            raise ConfigError("--transport is for Slack only")
        return walks.SETUP, ""
    transport = args.transport or now.slack.transport
    return walks.OVER_HTTP if transport == "http" else walks.SETUP, transport


# ---------------------------------------------------------------- asking


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    first: str = field(repr=False)  # the token that calls the API
    who: tuple[str, ...]  # accounts of the tokens
    file: str = field(repr=False)  # content of the token file
    remarks: tuple[str, ...]


def _ask(walk: PlatformSetup, base_url: str, *, asks: bool) -> _Given:
    [token] = walk.tokens
    value, who = _token(walk, token, base_url, asks=asks)
    remark = walk.remark(base_url, value)
    return _Given(first=value, who=(who,), file=f"{value}\n", remarks=(remark,) if remark else ())


def _ask_for_slack(walk: PlatformSetup, now: Config, base_url: str, transport: str, *, asks: bool) -> _Given:
    """Ask for the tokens of one workspace. Those of other workspaces are kept."""
    from hermes.app.factories.slack import Tokens
    from hermes.cli.setup import slack_tokens
    from hermes.cli.setup.slack_check import slack_team
    from hermes.config.secret import Secret

    before = slack_tokens.present(now.slack.tokens_file, base_url)
    bot, second = walk.tokens
    first, who = _token(walk, bot, base_url, asks=asks)
    team = slack_team(base_url, first)
    known = slack_tokens.signing_secret(before, team) if transport == "http" else None
    value, way = _token(walk, second, base_url, asks=asks, present=known.reveal() if known else "")
    new = Tokens(bot_token=Secret(first), team=team, **{second.field: Secret(value)})
    entries = slack_tokens.merged(before, new)
    remarks = [f"Kept from an earlier setup: {each.team}." for each in entries if each.team not in ("", team)]
    if left := slack_tokens.lacking(entries, transport):
        remarks.append(
            f"These workspaces are not set up for {transport} yet; set them up before the start: {', '.join(left)}."
        )
    return _Given(first=first, who=(who, way), file=slack_tokens.as_text(entries), remarks=tuple(remarks))


def _token(walk: PlatformSetup, token: Token, base_url: str, *, asks: bool, present: str = "") -> tuple[str, str]:
    """Read and check a token. Return it, and its account. An empty line keeps the present token."""
    from hermes.cli.setup.platform_check import BadTokenError

    for left in range(_TRIES - 1, -1, -1):
        hint = "hidden; press Enter to keep the present one" if present else "hidden"
        value = _typed(f"{token.prompt} ({hint}): ", secret=True) if asks else sys.stdin.readline().strip()
        if not value and present:
            return present, f"{token.prompt.lower()} unchanged"
        try:
            if not value:
                raise ConfigError(f"the {token.prompt.lower()} is empty")
            who = token.check(base_url, value)
        except HermesError as error:
            if isinstance(error, BadTokenError) and not asks:  # without a prompt, name the token
                raise BadTokenError(f"{token.prompt}: {error}") from error
            if not asks or not left:
                raise
            print_text(f"{error}. Try again.")
            continue
        if asks:
            print_text(f"Valid: {one_line(who)}.")
        return value, who
    raise AssertionError(walk.name)  # the last try returns or raises


def _ask_for_person(walk: PlatformSetup) -> list[str]:
    print_text(
        f"Your own user id ({walk.user_id})? It becomes the admin, who approves tool calls and restarts the daemon "
        "from the chat. Or press Enter, then write to the bot: it sends you a pairing code, for a guest."
    )
    while typed := _typed("Id: "):
        problem = _complaint(walk, "admins", typed)
        if not problem:
            return [typed]
        print_text(f"{one_line(typed)}: {problem}. Try again.")
    return []


def _complaint(walk: PlatformSetup, setting: str, person: str) -> str:
    """Return what is wrong with a user id, by the rule of the setting; empty if it is valid."""
    from hermes.config.settings import SETTINGS

    complaint = SETTINGS[f"{walk.name}.{setting}"].rule.complaint
    return complaint(person) if complaint is not None else ""


def _typed(prompt: str, *, secret: bool = False) -> str:
    if (line := typed(prompt, secret=secret)) is None:
        raise ConfigError("nothing was changed")
    return line


# ---------------------------------------------------------------- writing


def _changes(
    walk: PlatformSetup,
    home: Home,
    now: Config,
    *,
    allowed: list[str],
    admins: list[str],
    base_url: str,
) -> dict[str, Value]:
    changes: dict[str, Value] = {f"{walk.name}.enabled": True}
    changes[f"{walk.name}.{walk.setting}"] = _named(_token_file(walk, home), home)
    for setting, people in (("allowed_users", allowed), ("admins", admins)):
        if people:
            known = now.value(f"{walk.name}.{setting}")
            assert isinstance(known, tuple)
            changes[f"{walk.name}.{setting}"] = tuple(dict.fromkeys((*known, *people)))
    if base_url:
        changes[f"{walk.name}.base_url"] = base_url
    return changes


def _token_file(walk: PlatformSetup, home: Home) -> Path:
    return home.data_dir / f"{walk.name}.token"


def _named(path: Path, home: Home) -> str:
    """Return the path as written in the configuration file."""
    return path.name if path.parent == home.config_file.parent else str(path)


# ---------------------------------------------------------------- telling


def _greet(walk: PlatformSetup, base_url: str, token: str, people: list[str]) -> dict[str, str]:
    """Send a first message to these users. Return the problem for each, or an empty text."""
    greeted = {}
    for person in dict.fromkeys(people):
        if person == "*":
            continue
        try:
            walk.greet(base_url, token, person)
            greeted[person] = ""
        except HermesError as error:
            greeted[person] = str(error)
    return greeted


def _tell(args: argparse.Namespace, walk: PlatformSetup, home: Home, given: _Given, greeted: dict[str, str]) -> None:
    from hermes.config.home import is_free

    missing = _is_missing(walk)
    start = "hermes daemon" if is_free(home) else "hermes restart"
    if args.json:
        found: dict[str, Any] = {"platform": walk.name, "accounts": list(given.who), "config": str(home.config_file)}
        print_json(
            {**found, "remarks": list(given.remarks), "greeted": greeted, "package_missing": missing, "next": start}
        )
        return
    print_text(one_line(f"{walk.title} is set up ({', '.join(given.who)}); see {home.config_file}."))
    for remark in given.remarks:
        print_text(one_line(remark))
    for person, problem in greeted.items():
        print_text(
            one_line(
                f"Sent a first message to {person}."
                if not problem
                else f"Could not send a message to {person}: {problem}"
            )
        )
    _say_what_is_missing(walk)
    if not greeted:
        print_text(
            f"A user who writes to the bot gets a pairing code; `hermes pairing approve {walk.name} CODE` "
            "approves it."
        )
    if not _offers_restart(args, walk, home):
        print_text(f"Next: run `{start}`.")


def _is_missing(walk: PlatformSetup) -> bool:
    from importlib.util import find_spec

    return find_spec(walk.package) is None


def _say_what_is_missing(walk: PlatformSetup) -> None:
    from hermes.system.extra import install_line

    if _is_missing(walk):
        print(
            f"The package for {walk.title} is not installed. Install it with:\n  {install_line(walk.name)}"
        )  # not wrapped, to be pasted
