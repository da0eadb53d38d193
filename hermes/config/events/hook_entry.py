"""Entries of the section `hooks`, and the folders in the home's `hooks/`. Both are files of the owner."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from hermes.config.events.entries import NAME, EntryFields, read_entry
from hermes.domain.event.hook import Hook, known_event

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_TIMEOUT_S: Final = 10.0
MANIFEST: Final = "HOOK.yaml"
HANDLER: Final = "handler.py"
_MAX_MANIFEST: Final = 65_536  # bytes
_KEYS: Final = frozenset(
    {NAME, "on", "events", "command", "url", "token_env", "timeout", "timeout_s", "matcher", "on_failure", "title"}
)
_FOLDER_KEYS: Final = frozenset({"description", "version", "author"})
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def parse_hook(text: str) -> Hook:
    """Return the hook of an entry. Raises ValueError."""
    return _hook(read_entry(text, _KEYS), event=str(json.loads(text).get(NAME, "")))


def _hook(found: Mapping[str, Any], *, event: str, name: str = "", folder: str = "") -> Hook:
    fields = EntryFields(found, name or event or "hook")
    events = (*((event,) if event else ()), *fields.texts("on"), *fields.texts("events"))
    command, url = fields.text("command").strip(), fields.text("url").strip()
    if bool(command) == bool(url):
        raise fields.fail("needs either a command or a url")
    if url and not re.fullmatch(r"https?://[^\s/@]+(/[^\s@]*)?", url):
        raise fields.fail("url must be an address like https://host/path, without a token or password")
    if (token := fields.text("token_env")) and not _VARIABLE.fullmatch(token):
        raise fields.fail("token_env must be the name of an environment variable, not the token itself")
    if not events:
        raise fields.fail("names no event")
    try:
        on = tuple(dict.fromkeys(map(known_event, events)))
        re.compile(matcher := fields.text("matcher"))
    except (ValueError, re.error) as error:
        raise fields.fail(str(error)) from None
    default = fields.number("timeout", DEFAULT_TIMEOUT_S, least=0.1, most=600)
    return Hook(
        name=name or fields.text("title") or f"{on[0]} {command or url}"[:80],
        on=on,
        command=command,
        url=url,
        token_env=token,
        folder=folder,
        timeout_s=fields.number("timeout_s", default, least=0.1, most=600),
        matcher=matcher,
        closed=fields.choice("on_failure", "allow", ("allow", "block")) == "block",
    )


def read_hook_folders(folder: Path) -> tuple[list[Hook], list[str]]:
    """Return the hooks in the home's `hooks/`, and the problems of those that are not used. Blocking."""
    hooks, problems = list[Hook](), list[str]()
    try:
        names = sorted(each.name for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))
    except FileNotFoundError:
        return hooks, problems
    except OSError as error:
        return hooks, [f"{folder} cannot be read: {error.strerror}"]
    for name in names:
        try:
            hooks.append(_read_folder(folder / name))
        except (ValueError, OSError) as error:
            problems.append(f"hooks/{name} is not used: {error}")
    return hooks, problems


def _read_folder(folder: Path) -> Hook:
    import yaml  # noqa: PLC0415 - slow, and most homes have no hooks

    manifest = folder / MANIFEST
    for each in (folder.parent, folder, manifest, folder / HANDLER):
        if problem := _distrust(each):
            raise ValueError(problem)
    raw = manifest.read_bytes()
    if len(raw) > _MAX_MANIFEST:
        raise ValueError(f"{MANIFEST} is larger than {_MAX_MANIFEST} bytes")
    try:
        found = yaml.safe_load(raw)
    except yaml.YAMLError:
        raise ValueError(f"{MANIFEST} is not valid YAML") from None
    if not isinstance(found, dict):
        raise ValueError(f"{MANIFEST} must be a mapping")  # noqa: TRY004 - as every mistake of a setting
    if unknown := set(found) - _KEYS - _FOLDER_KEYS:
        raise ValueError(f"{MANIFEST}: unknown key {min(map(str, unknown))[:40]!r}")
    has_handler = not found.get("command") and not found.get("url")
    if has_handler and not (folder / HANDLER).is_file():
        raise ValueError(f"it has neither a command nor {HANDLER}")
    fields = {**found, "command": HANDLER} if has_handler else found
    hook = _hook(fields, event="", name=folder.name, folder=str(folder))
    return with_handler(hook, folder) if has_handler else hook


def with_handler(hook: Hook, folder: Path) -> Hook:
    import sys  # noqa: PLC0415 - for handlers only

    from hermes.domain.values import replace  # noqa: PLC0415

    argv = (sys.executable, "-I", "-c", _RUN_HANDLER, str(folder / HANDLER))
    return replace(hook, command="", argv=argv)


def _distrust(path: Path) -> str:
    """Return why a file must not be run: another user owns it or can write it. A missing file is no reason."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return "" if path.name == HANDLER else f"there is no {path.name}"
    if found.st_uid not in (0, os.geteuid()):
        return f"{path.name} belongs to another user"
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"{path.name} can be written by other users: run `chmod go-w`"
    return ""


# Runs `handle(event_type, context)` of a handler, which may be a coroutine. A dict that it returns is its answer.
_RUN_HANDLER: Final = """
import asyncio, importlib.util, inspect, json, sys
context = json.load(sys.stdin)
spec = importlib.util.spec_from_file_location("handler", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
answer = module.handle(context["event"], context)
if inspect.isawaitable(answer):
    async def wait():
        return await answer
    answer = asyncio.run(wait())
if isinstance(answer, dict):
    print(json.dumps(answer))
"""
