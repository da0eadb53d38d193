"""Agents to compare with: exact versions, and how each one serves chat completions from a folder of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench.wire import Request, post

KEY = "bench-key-0123456789abcdef"
CONTEXT_WINDOW = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    arguments: list[str]
    environ: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    name: str
    packages: tuple[str, ...]
    command: Callable[[Path, Path, str, int], Command]  # (folder with its bin/, home, address of the model, port)
    request: Request
    turns: dict[int, int]  # number of sessions: turns in each


def _nanobot(installed: Path, home: Path, model: str, port: int) -> Command:
    config = home / "config.json"
    defaults = {"model": "bench", "provider": "custom", "contextWindowTokens": CONTEXT_WINDOW}
    settings = {
        "agents": {"defaults": defaults | {"workspace": str(home / "workspace")}},
        "providers": {"custom": {"apiKey": KEY, "apiBase": f"{model}/v1"}},
    }
    config.write_text(json.dumps(settings))
    serve = ["serve", "--port", str(port), "--config", str(config), "--workspace", str(home / "workspace")]
    return Command(arguments=[str(installed / "bin" / "nanobot"), *serve], environ=_environ(home))


def _say_to_nanobot(session: str, text: str) -> bytes:
    body = {"messages": [{"role": "user", "content": text}], "session_id": session}
    return post("/v1/chat/completions", body)


def _hermes_agent(installed: Path, home: Path, model: str, port: int) -> Command:
    settings = {
        "model": {
            "default": "bench",
            "provider": "custom",
            "base_url": f"{model}/v1",
            "api_key": KEY,
            "context_length": CONTEXT_WINDOW,
        },
        "gateway": {"api_server": {"max_concurrent_runs": 0}},  # no limit; the default refuses the 11th turn
    }
    (home / "config.yaml").write_text(json.dumps(settings))
    environ = _environ(home) | {
        "HERMES_HOME": str(home),
        "API_SERVER_ENABLED": "true",
        "API_SERVER_KEY": KEY,
        "API_SERVER_PORT": str(port),
        "API_SERVER_HOST": "127.0.0.1",
    }
    return Command(arguments=[str(installed / "bin" / "hermes"), "gateway", "run"], environ=environ)


def _say_to_hermes_agent(session: str, text: str) -> bytes:
    body = {"model": "hermes-agent", "messages": [{"role": "user", "content": text}]}
    return post("/v1/chat/completions", body, Authorization=f"Bearer {KEY}", X_Hermes_Session_Id=session)


def _environ(home: Path) -> dict[str, str]:
    """Return an environment without keys and settings of other programs."""
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", "NO_COLOR": "1"}


PEERS = (
    Peer(
        name="hermes-agent",
        packages=("hermes-agent==0.19.0", "aiohttp==3.14.1"),  # its API server needs aiohttp, which is in its extras
        command=_hermes_agent,
        request=_say_to_hermes_agent,
        turns={1: 8, 8: 3, 64: 1},
    ),
    Peer(
        name="nanobot-ai",
        packages=("nanobot-ai[api]==0.3.5",),
        command=_nanobot,
        request=_say_to_nanobot,
        turns={1: 20, 8: 5, 64: 2},
    ),
)
OUR_TURNS = {1: 60, 8: 30, 64: 10}
