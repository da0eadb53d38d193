"""`make peers`: the same plain turns with Hermes and other agents, side by side, on the same fake model.

Each agent is installed in its own folder outside the tree and answers on its own chat-completions API, with one
session id per session. A peer that cannot be installed or does not start is reported with the reason.
"""

from __future__ import annotations

import asyncio
import datetime as dt
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import platformdirs

from bench.drive import closed_loop
from bench.harness import Served, cpu_s, daemon, memory_mb, scratch, server
from bench.page import put, shown
from bench.peers.catalog import OUR_TURNS, PEERS, Peer
from bench.wire import Connection, Request, turn
from tests.clients.install import CannotInstall, install_into, install_python

READY_WITHIN_S = 120.0
IDLE_AFTER_S = 5.0
_ROWS = {
    "start_s": "start until the first answer, s",
    "idle_mb": "memory, idle, MB",
    "busy_mb": "memory after the turns, MB",
    **{f"cpu_ms_at_{n}": f"CPU of a turn with {n} at a time, ms" for n in OUR_TURNS},
    **{f"per_s_at_{n}": f"turns per second with {n} at a time" for n in OUR_TURNS},
    **{f"p50_ms_at_{n}": f"latency p50 with {n} at a time, ms" for n in OUR_TURNS},
}


class CannotServe(Exception):  # noqa: N818 - a reason, not a failure of the bench
    """Says why a peer gave no answers."""


def main() -> int:
    results: dict[str, dict[str, float]] = {}
    missing: dict[str, str] = {}
    with scratch() as folder, server("bench.model") as model:
        for peer in PEERS:
            print(f"{peer.name}: installing and measuring", flush=True)
            try:
                results[peer.packages[0]] = _measure_peer(peer, folder, model.address)
            except (CannotInstall, CannotServe) as reason:
                missing[peer.packages[0]] = str(reason)
                print(f"{peer.name}: not measured: {reason}", flush=True)
        print("Hermes: measuring", flush=True)
        results = {"Hermes": _measure_hermes(folder, model.address)} | results
    print(json.dumps(results | {name: {"not measured": reason} for name, reason in missing.items()}, indent=2))
    lines = list(_table(results, missing))
    put("peers", lines)
    print("\n".join(lines))
    return 0 if len(results) > 1 else 1


def _measure_hermes(folder: Path, model: str) -> dict[str, float]:
    with daemon(folder / "warm", model):
        pass
    began = time.perf_counter()
    with daemon(folder / "hermes", model) as hermes:
        return asyncio.run(_measure(hermes, turn(hermes.key), OUR_TURNS, began))


def _measure_peer(peer: Peer, folder: Path, model: str) -> dict[str, float]:
    cache = platformdirs.user_cache_path("hermes-bench") / "peers"
    installed = install_into(cache, peer.name, peer.packages, install_python)
    with _served(peer, installed, folder / f"{peer.name}-warm", model) as warm:  # compiles
        asyncio.run(_first_answer(warm, peer.request))
    began = time.perf_counter()
    with _served(peer, installed, folder / peer.name, model) as target:
        return asyncio.run(_measure(target, peer.request, peer.turns, began))


@contextmanager
def _served(peer: Peer, installed: Path, home: Path, model: str) -> Iterator[Served]:
    home.mkdir()
    port = _free_port()
    command = peer.command(installed, home, model, port)
    log = home / "bench.log"
    with (
        log.open("wb") as output,
        subprocess.Popen(
            command.arguments, env=command.environ, cwd=home, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        ) as process,
    ):
        try:
            yield Served(f"http://127.0.0.1:{port}", "", process.pid)
        except CannotServe as reason:
            raise CannotServe(f"{reason}: {log.read_text(errors='replace').strip()[-500:]}") from None
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


async def _measure(target: Served, request: Request, turns: dict[int, int], began: float) -> dict[str, float]:
    await _first_answer(target, request)
    figures = {"start_s": time.perf_counter() - began}
    await asyncio.sleep(IDLE_AFTER_S)
    figures["idle_mb"] = memory_mb(target.pid)
    for sessions, each in turns.items():
        names = [f"peer-{sessions}-{number}" for number in range(sessions)]
        try:
            await closed_loop(target, names, request=request)
            load = await closed_loop(target, names, turns=each, request=request)
        except (AssertionError, OSError) as error:
            raise CannotServe(f"{sessions} sessions: {error}") from None
        figures[f"cpu_ms_at_{sessions}"] = load.cpu_ms
        figures[f"per_s_at_{sessions}"] = load.per_s
        figures[f"p50_ms_at_{sessions}"] = load.p50_ms
    return figures | {"busy_mb": memory_mb(target.pid)}


async def _first_answer(target: Served, request: Request) -> None:
    until = time.monotonic() + READY_WITHIN_S
    while time.monotonic() < until:
        try:
            cpu_s(target.pid)
            connection = await Connection.open(target.address)
            exchange = await asyncio.wait_for(connection.send(request("first", "hello")), READY_WITHIN_S)
        except (ConnectionError, TimeoutError):
            await asyncio.sleep(0.05)
            continue
        except OSError as error:
            raise CannotServe(f"it ended ({error})") from None
        connection.close()
        if exchange.status == 200 and b"An answer of a few words." in exchange.body:
            return
        raise CannotServe(f"it answered {exchange.status} {exchange.body[:300]!r}")
    raise CannotServe(f"no answer within {READY_WITHIN_S:.0f} s")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _table(results: dict[str, dict[str, float]], missing: dict[str, str]) -> Iterator[str]:
    today = dt.datetime.now(dt.UTC).date().isoformat()
    yield f"{today}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the end."
    yield ""
    yield f"| | {' | '.join(results)} |"
    yield "|---" * (len(results) + 1) + "|"
    for figure, what in _ROWS.items():
        yield f"| {what} | {' | '.join(shown(each[figure]) for each in results.values())} |"
    for name, reason in missing.items():
        yield ""
        yield f"{name} was not measured: {' '.join(reason.split())[:300]}"


if __name__ == "__main__":
    sys.exit(main())
