"""`hermes setup`: walks through what a chat platform needs, checks it there, and writes it down.

A token is never shown, and never in the configuration: it goes to a file of its own that only its owner can read.
Nothing is written before the platform has said that the tokens are good.
"""

from __future__ import annotations

import os
import sys
from dataclasses import field, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

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


def add_commands(commands: Commands) -> None:
    setup = commands.add(
        "setup",
        _setup,
        "Set up a chat platform: its tokens are checked there, kept in files of their own, and the configuration is "
        "written. Without a terminal, tokens come on stdin, one a line.",
        examples="  hermes setup telegram\n  hermes setup telegram --allow 77 < token.txt\n"
        "  hermes setup slack --transport http",
        json=True,
    )
    setup.add_argument("platform", choices=tuple(PLATFORMS))
    setup.add_argument("--allow", action="append", default=[], metavar="ID", help="a person who may talk to it")
    setup.add_argument(
        "--admin",
        action="append",
        default=[],
        metavar="ID",
        help="a person who may also approve calls and restart it",
    )
    setup.add_argument("--base-url", default="", metavar="URL", help="the platform's address, if it is another one")
    setup.add_argument(
        "--transport", choices=("socket", "http"), help="how Slack's messages come (default: as it is configured)"
    )
    setup.add_argument("--no-hello", action="store_true", help="do not write to those who may talk to it")


def _setup(args: argparse.Namespace, environ: Mapping[str, str]) -> int:
    from hermes.config.home import Home, prepare
    from hermes.config.loader import load_config
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
        _say_what_is_missing(walk)  # first: whoever installs it has to come back anyway
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
    text = _checked_text(home, changes, environ)
    _write(_token_file(walk, home), given.file)
    _write(home.config_file, text)
    greeted = {} if args.no_hello else _greet(walk, base_url, given.first, [*allowed, *admins])
    _tell(args, walk, home, given, greeted)
    return 0


def _way(args: argparse.Namespace, now: Config) -> tuple[PlatformSetup, str]:
    """What is asked for, and how messages come where there are several ways."""
    walks = import_module(PLATFORMS[args.platform].set_up_by)
    if args.platform != SLACK.name:
        if args.transport:
            raise ConfigError("--transport is about Slack")
        return walks.SETUP, ""
    transport = args.transport or now.slack.transport
    return walks.OVER_HTTP if transport == "http" else walks.SETUP, transport


# ---------------------------------------------------------------- asking


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    first: str = field(repr=False)  # the token that speaks
    who: tuple[str, ...]  # they belong to
    file: str = field(repr=False)  # that holds them
    remarks: tuple[str, ...]


def _ask(walk: PlatformSetup, base_url: str, *, asks: bool) -> _Given:
    [token] = walk.tokens
    value, who = _token(walk, token, base_url, asks=asks)
    remark = walk.remark(base_url, value)
    return _Given(first=value, who=(who,), file=f"{value}\n", remarks=(remark,) if remark else ())


def _ask_for_slack(walk: PlatformSetup, now: Config, base_url: str, transport: str, *, asks: bool) -> _Given:
    """The tokens of one workspace; those of others stay."""
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
    remarks = [f"Set up before, and kept: {each.team}." for each in entries if each.team not in ("", team)]
    if left := slack_tokens.lacking(entries, transport):
        remarks.append(f"Before it can start, set up for {transport} as well: {', '.join(left)}.")
    return _Given(first=first, who=(who, way), file=slack_tokens.as_text(entries), remarks=tuple(remarks))


def _token(walk: PlatformSetup, token: Token, base_url: str, *, asks: bool, present: str = "") -> tuple[str, str]:
    """The token, and who it belongs to. At a terminal a bad one can be typed again; nothing keeps the present one."""
    from hermes.cli.setup.platform_check import BadTokenError

    for left in range(_TRIES - 1, -1, -1):
        hint = "not shown; nothing keeps the one that is there" if present else "not shown"
        value = _typed(f"{token.prompt} ({hint}): ", secret=True) if asks else sys.stdin.readline().strip()
        if not value and present:
            return present, f"the {token.prompt.lower()} as before"
        try:
            if not value:
                raise ConfigError(f"no {token.prompt.lower()} was given")
            who = token.check(base_url, value)
        except HermesError as error:
            if isinstance(error, BadTokenError) and not asks:  # nobody saw which one was asked for
                raise BadTokenError(f"{token.prompt}: {error}") from error
            if not asks or not left:
                raise
            print_text(f"{error}. Try again.")
            continue
        if asks:
            print_text(f"Good: {one_line(who)}.")
        return value, who
    raise AssertionError(walk.name)  # the last try returns or raises


def _ask_for_person(walk: PlatformSetup) -> list[str]:
    print_text(
        f"What is your own id there ({walk.user_id})? You become its admin: you approve what it asks for, and "
        "restart it from the chat. Or nothing: then write to the bot, and it tells you a code, for a guest."
    )
    while typed := _typed("Id: "):
        problem = _complaint(walk, "admins", typed)
        if not problem:
            return [typed]
        print_text(f"{one_line(typed)}: {problem}. The token is kept; try again.")
    return []


def _complaint(walk: PlatformSetup, setting: str, person: str) -> str:
    """Return what is wrong with a person's id, as the configuration would say it; empty if nothing is."""
    from hermes.config.settings import SETTINGS

    complaint = SETTINGS[f"{walk.name}.{setting}"].rule.complaint
    return complaint(person) if complaint is not None else ""


def _typed(prompt: str, *, secret: bool = False) -> str:
    from getpass import getpass

    try:
        return (getpass if secret else input)(prompt).strip()
    except EOFError:
        print()
        raise ConfigError("nothing was changed") from None


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
    """As the configuration file can say it."""
    return path.name if path.parent == home.config_file.parent else str(path)


def _checked_text(home: Home, changes: Mapping[str, Value], environ: Mapping[str, str]) -> str:
    """The file as it will be. Raises ConfigError when it could not be used; nothing is changed then."""
    from hermes.config.editor import with_settings
    from hermes.config.loader import load_config

    old = home.config_file.read_text("utf-8") if home.config_file.exists() else ""
    text = with_settings(old, changes)
    home.config_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = home.config_file.with_name(f"{home.config_file.name}.check")
    try:
        _write(draft, text)
        load_config(replace(home, config_file=draft), environ)
    finally:
        draft.unlink(missing_ok=True)
    return text


def _write(path: Path, text: str) -> None:
    """Whole or not at all; for its owner alone, unless it was there before and was open to others."""
    path = path.resolve()  # one that is kept elsewhere stays there
    mode = path.stat().st_mode & 0o777 if path.exists() and path.suffix != ".token" else 0o600
    draft = path.with_name(f"{path.name}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor has no path
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


# ---------------------------------------------------------------- telling


def _greet(walk: PlatformSetup, base_url: str, token: str, people: list[str]) -> dict[str, str]:
    """Whom it wrote to, each with what was wrong, if anything."""
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
        print_text(one_line(f"Said hello to {person}." if not problem else f"No hello to {person}: {problem}"))
    _say_what_is_missing(walk)
    if not greeted:
        print_text(
            f"Whoever writes to it now is told a code; `hermes pairing approve {walk.name} CODE` lets them in."
        )
    print_text(f"`{start}` makes it talk.")


def _is_missing(walk: PlatformSetup) -> bool:
    from importlib.util import find_spec

    return find_spec(walk.package) is None


def _say_what_is_missing(walk: PlatformSetup) -> None:
    from hermes.system.extra import install_line

    if _is_missing(walk):
        print(
            f"The package for {walk.title} is not installed yet. First:\n  {install_line(walk.name)}"
        )  # in one line
