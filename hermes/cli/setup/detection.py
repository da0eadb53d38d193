"""Detection of usable models: keys in the environment, servers on this machine, homes of other programs.

Nothing is changed, and no key is printed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from hermes.config.providers import PROVIDERS
from hermes.config.secret import Secret
from hermes.domain.values import dataclass

ListModels = Callable[[str], "list[str] | None"]  # address -> models; None: no server answers
_MAX_FILE = 1 << 20  # bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedModel:
    provider: str
    found: str  # where it was found, for people
    name: str = ""  # model; empty if not known
    base_url: str = ""
    key: Secret | None = None  # of another program's home; None: from the environment, or none is needed
    offered: tuple[str, ...] = ()  # models of a server


def detect(environ: Mapping[str, str], user_home: Path, list_models: ListModels) -> list[DetectedModel]:
    return [
        *_keys(environ),
        *_servers(list_models),
        *_hermes_agent(user_home / ".hermes"),
        *_openclaw(user_home / ".openclaw"),
    ]


def _keys(environ: Mapping[str, str]) -> Iterator[DetectedModel]:
    for provider in PROVIDERS.values():
        if provider.key_variable and provider.base_url and environ.get(provider.key_variable, "").strip():
            known = tuple(name for name, _ in provider.models)
            yield DetectedModel(
                provider=provider.name,
                found=f"{provider.key_variable} is set",
                name=known[0] if known else "",
                offered=known,
            )


def _servers(list_models: ListModels) -> Iterator[DetectedModel]:
    for provider in PROVIDERS.values():
        if provider.base_url.startswith("http://127.0.0.1:") and (names := list_models(provider.base_url)):
            yield DetectedModel(
                provider=provider.name,
                found=f"{provider.title} answers at {provider.base_url}",
                name=names[0],
                offered=tuple(names),
            )


def _hermes_agent(home: Path) -> Iterator[DetectedModel]:
    import yaml

    if (home / ".hermes-home").exists():  # ours
        return
    with suppress(OSError, ValueError, yaml.YAMLError):
        settings = yaml.safe_load(_read(home / "config.yaml"))
        model = settings.get("model") if isinstance(settings, dict) else None
        found = {"default": model} if isinstance(model, str) else model if isinstance(model, dict) else {}
        keys = _variables(home / ".env")
        yield from _foreign(
            f"settings of hermes-agent in {home}",
            provider=str(found.get("provider") or ""),
            name=str(found.get("default") or found.get("name") or ""),
            base_url=str(found.get("base_url") or ""),
            keys=keys,
        )


def _openclaw(home: Path) -> Iterator[DetectedModel]:
    with suppress(OSError, ValueError, AttributeError):
        settings = json.loads(_read(home / "openclaw.json"))
        model: Any = settings.get("agents", {}).get("defaults", {}).get("model", "")
        primary = str(model.get("primary", "") if isinstance(model, dict) else model)
        provider, _, name = primary.partition("/")
        keys = {name: str(value) for name, value in settings.get("env", {}).items() if isinstance(value, str)}
        yield from _foreign(f"settings of OpenClaw in {home}", provider=provider, name=name, base_url="", keys=keys)


def _foreign(
    found: str, *, provider: str, name: str, base_url: str, keys: Mapping[str, str]
) -> Iterator[DetectedModel]:
    """Yield the model of another program, if it is one that we can call."""
    entry = PROVIDERS.get(provider) or (PROVIDERS["custom"] if base_url else None)
    if entry is None or not name:
        return
    key = keys.get(entry.key_variable, "").strip()
    yield DetectedModel(
        provider=entry.name, found=found, name=name, base_url=base_url, key=Secret(key) if key else None
    )


def _read(file: Path) -> str:
    with file.open("rb") as stream:
        return stream.read(_MAX_FILE).decode("utf-8", "replace")


def _variables(file: Path) -> dict[str, str]:
    with suppress(OSError):
        pairs = (line.strip().removeprefix("export ").partition("=") for line in _read(file).splitlines())
        return {name.strip(): value.strip().strip("'\"") for name, found, value in pairs if found}
    return {}
