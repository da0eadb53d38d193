"""Driver of aider: its coder in ask mode, as aider's own scripting interface uses it."""

from __future__ import annotations

import gc
import inspect
import json
import os
from base64 import b64decode
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.clients.drivers.protocol import Answer, Ask, ClientLimitError, Connection, serve

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it fetches a price list when it is imported
os.environ["AIDER_ANALYTICS"] = "false"
from aider.coders import Coder
from aider.io import InputOutput
from aider.models import Model

_ESTABLISHED = "01"  # of <net/tcp_states.h>


class Aider:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        os.environ["OPENAI_API_BASE"] = connection.base_url
        os.environ["OPENAI_API_KEY"] = connection.key
        _describe_model()
        self._errors: list[str] = []
        self._coders: dict[str, Any] = {}

    def __call__(self, ask: Ask) -> Answer:
        coder = self._coders.setdefault(ask.conversation, self._coder())
        _check_limits(coder, ask)
        coder.stream = ask.stream
        coder.main_model.extra_params = {"extra_headers": ask.headers}  # as in .aider.model.settings.yml
        if ask.picture:
            picture = Path("picture.png")
            picture.write_bytes(b64decode(ask.picture.partition("base64,")[2]))
            coder.add_rel_fname(str(picture))
        if not ask.stream:
            return self._checked(coder.run(with_message=ask.text) or "")
        open_before = _connections(self._connection.base_url)
        chunks = coder.run_stream(ask.text)
        for _ in chunks:
            self._connection.on_chunk()
            if ask.abandon:
                with suppress(StopIteration):
                    chunks.throw(KeyboardInterrupt)  # Ctrl-C, as a person stops it
                if _connections(self._connection.base_url) >= max(open_before, 1):
                    raise ClientLimitError("after Ctrl-C aider keeps the connection open until it ends")
                break
        return self._checked(coder.partial_response_content)

    def _checked(self, text: str) -> Answer:
        """The answer, or the error that aider printed instead."""
        errors, self._errors[:] = self._errors[:], []
        if errors and not text:
            raise RuntimeError(errors[-1])
        return Answer(text=text)

    def _coder(self) -> Any:
        io = InputOutput(pretty=False, yes=True, fancy_input=False)
        io.tool_error = lambda message="", strip=True: self._errors.append(str(message))
        model = Model("openai/hermes")
        return Coder.create(main_model=model, edit_format="ask", io=io, use_git=False, map_tokens=0)


def _describe_model() -> None:
    """Write what aider knows about models: else it fetches a list from another server."""
    known = Path.home() / ".aider" / "caches" / "model_prices_and_context_window.json"
    known.parent.mkdir(parents=True, exist_ok=True)
    fields = {"litellm_provider": "openai", "supports_vision": True, "max_input_tokens": 100_000}
    known.write_text(json.dumps({"openai/hermes": fields}), encoding="utf-8")


def _connections(base_url: str) -> int:
    """The open connections of this process to the daemon, idle ones included."""
    gc.collect()
    sockets = {str(entry.readlink()) for entry in Path("/proc/self/fd").iterdir() if entry.is_socket()}
    port = f":{urlsplit(base_url).port:04X}"
    lines = [line.split() for line in Path("/proc/self/net/tcp").read_text(encoding="ascii").splitlines()[1:]]
    return sum(
        remote.endswith(port) and state == _ESTABLISHED and f"socket:[{inode}]" in sockets
        for _, _, remote, state, _, _, _, _, _, inode, *_ in lines
    )


def _check_limits(coder: Any, ask: Ask) -> None:
    added = coder.fmt_system_prompt(coder.gpt_prompts.system_reminder).strip()
    if added and ask.continues:
        raise ClientLimitError(
            f"it adds a line ({added!r}) to the last user message only, so that its history never equals what it "
            "sent, and its answer is never only `yes`; a session header keeps the session"
        )
    accepted = set(inspect.signature(Model.send_completion).parameters)
    if ask.tools and coder.functions is None:
        raise ClientLimitError("aider has no tools: its edits are text in the answer")
    if ask.structured and not accepted & {"response_format", "schema"}:
        raise ClientLimitError("aider asks for no structured output: its edits are text in the answer")


if __name__ == "__main__":
    serve(Aider)
