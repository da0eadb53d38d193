"""Worker program that runs the local model and answers requests one after the other.

It is started by file name and imports nothing of Hermes. Loading the weights blocks the interpreter for a second,
and a failed assertion in llama.cpp aborts the process; a separate process protects the daemon from both. It ends
with its standard input, so it does not outlive the daemon.

Input: four bytes of length, then the request. Output: a line per chunk, then an empty line.
"""

from __future__ import annotations

import json
import os
import secrets
import sys
from importlib import import_module
from typing import Any


def load(weights: str, alias: str, context: int) -> Any:
    xllamacpp = import_module("xllamacpp")
    settings = xllamacpp.CommonParams()
    settings.model.path = weights
    settings.model_alias = {alias}
    settings.n_ctx = context
    settings.n_parallel = 1
    settings.verbosity = 0
    settings.api_keys = [secrets.token_hex(32)]  # the engine opens a port; a random key locks it
    return xllamacpp.Server(settings)


def main() -> None:
    weights, alias, context = sys.argv[1:]
    # Other writes to standard output must not mix with the chunks.
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)

    def write(chunk: bytes) -> None:
        out.write(chunk + b"\n")

    engine = load(weights, alias, int(context))
    while size := sys.stdin.buffer.read(4):
        request = sys.stdin.buffer.read(int.from_bytes(size, "big"))
        try:
            engine.handle_chat_completions(request, write)
        except ValueError as error:
            refusal = {"code": 400, "type": "invalid_request_error", "message": str(error)}
            write(json.dumps({"error": refusal}).encode())
        write(b"")


if __name__ == "__main__":
    main()
