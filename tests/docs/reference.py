"""Generator of the reference pages in docs/reference/, from the code and `config/hermes.yaml`.

python -m tests.docs.reference
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from hermes.adapters.openai_api.openapi.document import document
from hermes.cli.main import _build_parser
from hermes.config.providers import PROVIDERS
from hermes.config.settings import SECTIONS, SETTINGS, Setting
from hermes.services.commands.registry import COMMANDS, SlashCommand

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference"
MADE = "<!-- Written by `make reference`. Do not edit. -->"
_LINE = re.compile(r"^  (\w+): *((?:\"[^\"]*\"|\[[^\]]*\]|[^#\s])*) *(?:# (.*))?$")
_STATUS = re.compile(r"^\d|^default$")

# Variables that are neither settings nor keys of model providers. A test compares the names with the code.
OTHER_VARIABLES: dict[str, str] = {
    "HERMES_HOME": "directory with all files of Hermes; empty: the platform's data and configuration directories",
    "HERMES_API_KEY": "key of the API; overrides `api.key`",
    "TELEGRAM_BOT_TOKEN": "token of the Telegram bot; `telegram.token_file` overrides it",
    "HONCHO_API_KEY": "key of Honcho, if `profile.provider` is `honcho`",
    "SLACK_BOT_TOKEN": "bot tokens of the Slack app, one for each workspace, separated by commas",
    "SLACK_APP_TOKEN": "app-level token of the Slack app, for Socket Mode",
    "SLACK_SIGNING_SECRET": "signing secret of the Slack app, for HTTP",
    "EDITOR": "editor of `hermes config edit`",
    "VISUAL": "the same; overrides `EDITOR`",
    "NO_COLOR": "output of the command line without colour",
    "TERM": "with `dumb`, `hermes chat` uses no colour and no cursor movement",
    "TZ": "time zone of resets, unless `session_reset.timezone` is set",
    "XDG_CONFIG_HOME": "directory of user units, for `hermes service`",
    "SYSTEMD_UNIT_PATH": "the same; overrides `XDG_CONFIG_HOME`",
    "NOTIFY_SOCKET": "set by systemd: socket for the state of the service",
    "WATCHDOG_PID": "set by systemd: process of the watchdog",
    "WATCHDOG_USEC": "set by systemd: interval of the watchdog",
}


def pages() -> dict[str, str]:
    """Return the text of each page by file name."""
    parts = {
        "settings.md": ("Settings", _settings()),
        "commands.md": ("Commands of the terminal", _commands()),
        "slash-commands.md": ("Slash commands", _slash_commands()),
        "endpoints.md": ("Endpoints", _endpoints()),
        "environment.md": ("Environment variables", _environment()),
    }
    return {name: "\n".join((f"# {title}", "", MADE, "", *lines)) + "\n" for name, (title, lines) in parts.items()}


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    yield from (_row(head), _row(("---",) * len(head)))
    yield from map(_row, rows)
    yield ""


def _row(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", " ".join(cell.split())) for cell in cells) + " |"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


# ---------------------------------------------------------------- settings


def _settings() -> Iterator[str]:
    yield "All settings of `config.yaml` with their defaults. `hermes config path` prints the path of the file,"
    yield "`hermes config set KEY VALUE` changes a setting, and `hermes config check` checks the file. A *live*"
    yield "setting changes on `hermes reload`; any other needs `hermes restart`. [environment.md](environment.md) has"
    yield "the variables that override settings."
    yield ""
    introductions, comments = _documented()
    for section in SECTIONS:
        yield from (f"## {section}", "")
        if section in introductions:
            yield from (_linked(introductions[section]), "")
        own = [each for each in SETTINGS.values() if each.section == section]
        yield from _table(
            ("setting", "default", "values", "meaning"),
            (
                (_code(each.name), _code(comments[each.name][0]), _values(each), comments[each.name][1])
                for each in own
            ),
        )


def _documented() -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """Return the introduction of each section, and default and comment of each setting, from `config/hermes.yaml`."""
    introductions: dict[str, str] = {}
    comments: dict[str, tuple[str, str]] = {}
    above: list[str] = []
    section = ""
    for line in (ROOT / "config" / "hermes.yaml").read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            above.append(line.removeprefix("#").strip())
        elif found := re.match(r"^(\w+):$", line):
            section = found[1]
            if above:
                introductions[section] = " ".join(above)
            above = []
        elif found := _LINE.match(line):
            comments[f"{section}.{found[1]}"] = (found[2], (found[3] or "").replace(" (live)", ""))
        else:
            above = []
    return introductions, comments


def _linked(text: str) -> str:
    return re.sub(r"docs/(\w+)\.md", r"[\1.md](../\1.md)", text)


def _values(setting: Setting) -> str:
    rule, default = setting.rule, setting.default
    if isinstance(default, bool):
        kind = "`true`, `false`"
    elif isinstance(default, tuple):
        kind = "list"
    elif isinstance(default, str):
        kind = ", ".join(_code(each) for each in rule.choices if each) or "text"
    else:
        kind = f"{rule.least:.12g} to {rule.most:.12g}"
    return f"{kind}; live" if rule.live else kind


# ---------------------------------------------------------------- commands


def _commands() -> Iterator[str]:
    yield "All commands of `hermes` with their arguments and options. [commands.md](../commands.md) explains them by"
    yield "task. `--help` prints the same text."
    yield ""
    for name, parser in sorted(_parsers("hermes", _build_parser(""))):
        if name == "hermes":
            continue
        yield from (f"{'#' * min(name.count(' ') + 1, 4)} {name}", "", (parser.description or "").strip(), "")
        rows = [row for action in parser._actions if (row := _argument(action)) is not None]
        if rows:
            yield from _table(("argument", "meaning"), rows)
        if parser.epilog and parser.epilog.startswith("examples:"):
            yield from ("```text", *(line.strip() for line in parser.epilog.splitlines()[1:]), "```", "")


def _parsers(name: str, parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    yield name, parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, child in action.choices.items():
                yield from _parsers(f"{name} {word}", child)


def _argument(action: argparse.Action) -> tuple[str, str] | None:
    if isinstance(action, argparse._HelpAction | argparse._SubParsersAction) or action.help == argparse.SUPPRESS:
        return None
    value = _metavar(action)
    if action.option_strings:
        shown = ", ".join(_code(f"{option} {value}".rstrip()) for option in action.option_strings)
    else:
        shown = _code(f"[{value}]" if action.nargs in ("?", "*") else value)
    default = action.default if isinstance(action.default, str | int | float) else ""
    text = (action.help or "").replace("%(default)s", str(default)).replace("%%", "%")
    return shown, text


def _metavar(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices is not None:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return action.dest.upper() if action.option_strings else action.dest


# ---------------------------------------------------------------- slash commands


def _slash_commands() -> Iterator[str]:
    yield "Commands of a conversation, the same in the terminal, on Telegram and Slack, and over the API. On Slack"
    yield "write `!new` or `/hermes new`. `/help` prints this list for your role."
    yield ""
    for group, members in groupby(COMMANDS, lambda each: each.group):
        yield from (f"## {group.value}", "")
        yield from _table(("command", "role", "meaning"), map(_slash_command, members))


def _slash_command(command: SlashCommand) -> tuple[str, str, str]:
    also = f" Also {', '.join(_code('/' + each) for each in command.aliases)}." if command.aliases else ""
    rest = " Only while no turn runs." if command.needs_rest else ""
    details = f" {command.details}" if command.details else ""
    return _code(command.written), command.needs.value, f"{command.help.rstrip('.')}.{details}{rest}{also}"


# ---------------------------------------------------------------- endpoints


def _endpoints() -> Iterator[str]:
    yield "All requests of the API. Each needs `Authorization: Bearer KEY`, unless it says otherwise. The daemon"
    yield "serves the machine-readable document at `/openapi.json`. [api.md](../api.md) explains sessions, streams,"
    yield "and errors."
    yield ""
    found = document("0")["paths"]
    for prefix, paths in groupby(found, _area):
        yield from (f"## {prefix}", "")
        for path in paths:
            for method, operation in found[path].items():
                yield from _endpoint(method.upper(), path, operation)


def _area(path: str) -> str:
    return "/".join(path.split("/")[:3]) if path.startswith(("/v1/", "/api/")) else "Other"


def _endpoint(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield from (f"### {method} {path}", "")
    key = "" if operation.get("security", [{}]) else " Needs no key."
    yield from (f"{operation['summary'].rstrip('.')}.{key}", "")
    rows = [_parameter(each) for each in operation.get("parameters", ())]
    rows += [(_code(name), "body", text) for name, text in _body(operation)]
    if rows:
        yield from _table(("parameter", "in", "value"), rows)
    yield from (f"Status: {', '.join(each for each in operation['responses'] if _STATUS.match(each))}.", "")


def _parameter(parameter: dict[str, Any]) -> tuple[str, str, str]:
    required = "; required" if parameter.get("required") and parameter["in"] != "path" else ""
    return _code(parameter["name"]), parameter["in"], _kind(parameter.get("schema", {})) + required


def _body(operation: dict[str, Any]) -> Iterator[tuple[str, str]]:
    content = operation.get("requestBody", {}).get("content", {})
    for kind in content.values():
        name = kind.get("schema", {}).get("$ref", "").rpartition("/")[2]
        schema = document("0")["components"]["schemas"].get(name, kind.get("schema", {}))
        required = schema.get("required", ())
        for field, value in schema.get("properties", {}).items():
            yield field, _kind(value) + ("; required" if field in required else "")


def _kind(schema: dict[str, Any]) -> str:
    if "enum" in schema:
        return ", ".join(_code(str(each)) for each in schema["enum"] if each is not None)
    if "anyOf" in schema:
        kinds = [_kind(each) for each in schema["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if "$ref" in schema:
        return "object"
    kind = schema.get("type", "any value")
    text = f"list of {_kind(schema['items'])}" if kind == "array" and schema.get("items") else str(kind)
    if "minimum" in schema and "maximum" in schema:
        text += f" from {schema['minimum']} to {schema['maximum']}"
    return text


# ---------------------------------------------------------------- environment


def _environment() -> Iterator[str]:
    yield "Variables that Hermes reads. A service reads them from `service.env` beside the configuration."
    yield ""
    yield from (
        "## General",
        "",
        *_table(("variable", "meaning"), ((_code(k), v) for k, v in OTHER_VARIABLES.items())),
    )
    yield from ("## Keys of model providers", "")
    yield "`model.api_key_env` names another variable, and `model.api_key_file` a file."
    yield ""
    yield from _table(
        ("variable", "provider"),
        ((_code(each.key_variable), each.title) for each in PROVIDERS.values() if each.key_variable),
    )
    yield from ("## Settings", "")
    yield "Each setting has a variable that overrides the file. Separate list items by commas."
    yield ""
    yield from _table(
        ("variable", "setting"), ((_code(each.variable), _code(each.name)) for each in SETTINGS.values())
    )


def write() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
