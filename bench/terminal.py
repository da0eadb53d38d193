"""Terminal interface on a pseudo terminal: first paint after exec, and key to echo while an answer streams.

A key is echoed when the bytes of its screen cell arrive; the answer comes at 50 tokens a second.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from typing import Any

from tests.support.daemon_process import DaemonProcess
from tests.support.model_server import Drip, Reply, delta, stream
from tests.support.pty_program import PtyProgram
from tests.support.scripted_model import ScriptedModel

_STARTS = 7
_KEYS = "QZJXKVWBYHGUPMNLRDT"  # nothing else on the screen has these
_ROUNDS = 5
_TOKEN_S = 0.02
_HERMES = [sys.executable, "-m", "hermes.cli.main"]
_PAINTED = b"connecting"  # text of the first frame


def run() -> dict[str, float]:
    with ScriptedModel(idle_timeout_s=60) as model:
        model.on_request = _slow_answer
        with DaemonProcess(config=model.config) as daemon:
            environ = {**os.environ, **daemon.environ}
            paints = [first_paint_s(environ) for _ in range(_STARTS)]
            echoes = echoes_s(environ)
    return {
        "first_paint_ms": 1e3 * min(paints),
        "first_paint_median_ms": 1e3 * statistics.median(paints),
        "echo_median_ms": 1e3 * statistics.median(echoes),
        "echo_p95_ms": 1e3 * sorted(echoes)[int(len(echoes) * 0.95)],
    }


def _slow_answer(_body: dict[str, Any]) -> Reply:
    return stream(Drip(data=delta(content="word "), every_s=_TOKEN_S))


def first_paint_s(environ: dict[str, str]) -> float:
    began = time.perf_counter()
    with PtyProgram(_HERMES, environ) as program:
        program.until(_PAINTED)
        return time.perf_counter() - began


def echoes_s(environ: dict[str, str], *, rounds: int = _ROUNDS) -> list[float]:
    """Return the time from each key to its echo."""
    echoes = []
    with PtyProgram(_HERMES, environ) as program:
        program.until(b"ready")
        program.type("go\r")
        program.until(b"writing")
        for _ in range(rounds):
            for key in _KEYS:
                program.drain(0.06)
                program.type(key)
                echoes.append(program.until(key.encode()))
            program.type("\x03")  # Ctrl-C clears the editor
            program.drain(0.3)
    return echoes


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
