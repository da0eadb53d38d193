"""Cost of plain API turns under load, as ratios to a bare aiohttp proxy measured in the same run.

Four processes: clients, the daemon, a model that answers immediately, and a bare proxy. The proxy asks the model for
a stream and answers with the text in it, as the daemon does, but it checks, stores and remembers nothing. It also
forwards requests as bytes, for comparison (`forward`). Rounds alternate, so that a slow phase of the machine affects
all. The CPU time is that of the daemon or the proxy alone. `python -m bench.load profile SECONDS` runs 64 sessions
against a daemon under cProfile.
"""

from __future__ import annotations

import asyncio
import json
import os
import pstats
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, TCPConnector, web

ROUNDS = 3
SESSIONS = (1, 8, 64)
REQUESTS = {1: 200, 8: 400, 64: 1280}
PATH = "/v1/chat/completions"
_TICKS = os.sysconf("SC_CLK_TCK")


def run() -> dict[str, float]:
    with (
        tempfile.TemporaryDirectory(prefix="hermes-bench-", dir=Path.cwd()) as folder,
        _server("model") as (model, _),
        _server("proxy", model) as (proxy, proxy_pid),
        _daemon(Path(folder), model) as (daemon, key, daemon_pid),
    ):
        return asyncio.run(_measure((daemon, key, daemon_pid), (proxy, "", proxy_pid)))


@contextmanager
def _server(*role: str) -> Iterator[tuple[str, int]]:
    with subprocess.Popen([sys.executable, "-m", "bench.load", *role], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().decode().strip(), process.pid
        finally:
            process.terminate()


@contextmanager
def _daemon(folder: Path, model: str, *wrapper: str) -> Iterator[tuple[str, str, int]]:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("HERMES_")}
    environ |= {
        "HERMES_HOME": str(folder / "h"),
        "HERMES_API_PORT": "0",
        "HERMES_AUXILIARY_TITLE": "none",  # one model call a turn
        "HERMES_AUXILIARY_REVIEW": "none",
        "HERMES_MODEL_PROVIDER": "openai",
        "HERMES_MODEL_BASE_URL": f"{model}/v1",
        "HERMES_MODEL_NAME": "bench",
        "HERMES_MODEL_API_KEY_ENV": "",
        "HERMES_MODEL_CONTEXT_WINDOW": "100000000",
        "HERMES_TERMINAL_CWD": str(folder),
    }
    command = [sys.executable, *wrapper, "-m", "hermes.cli.main", "daemon"]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().decode().split(" is ready at ")[1].split()[0]
            yield address, (folder / "h" / "api.key").read_text().strip(), process.pid
        finally:
            process.terminate()


async def _measure(daemon: tuple[str, str, int], proxy: tuple[str, str, int]) -> dict[str, float]:
    figures: dict[str, float] = {}
    for sessions in SESSIONS:
        await _load(*daemon, sessions, sessions * 4)  # imports, connections, sessions
        await _load(*proxy, sessions, sessions * 4)
        ours, bare, forward = [], [], []
        for _ in range(ROUNDS):
            ours.append(await _load(*daemon, sessions, REQUESTS[sessions]))
            bare.append(await _load(*proxy, sessions, REQUESTS[sessions]))
            forward.append(await _load(*proxy, sessions, REQUESTS[sessions], path=f"/forward{PATH}"))
        ours_ms, bare_ms = (statistics.median(each[0] for each in rounds) for rounds in (ours, bare))
        figures[f"cpu_ms_at_{sessions}"] = ours_ms
        figures[f"bare_cpu_ms_at_{sessions}"] = bare_ms
        figures[f"cpu_to_bare_at_{sessions}"] = ours_ms / bare_ms
        figures[f"cpu_to_forward_at_{sessions}"] = ours_ms / statistics.median(each[0] for each in forward)
        figures[f"turns_per_s_at_{sessions}"] = statistics.median(each[1] for each in ours)
        figures[f"bare_per_s_at_{sessions}"] = statistics.median(each[1] for each in bare)
        added = statistics.median(each[2] for each in ours) - statistics.median(each[2] for each in bare)
        figures[f"added_p50_ms_at_{sessions}"] = added
    return figures


async def _load(
    address: str, key: str, pid: int, sessions: int, requests: int, *, path: str = PATH
) -> tuple[float, float, float]:
    """Return CPU time per request in ms, requests per second, and the median latency in ms."""
    latencies: list[float] = []

    async def talk(client: ClientSession, name: str, count: int) -> None:
        headers = {"X-Hermes-Session-Id": name}
        for number in range(count):
            began = time.perf_counter()  # makes each message a new one: an equal one could be a retry
            said = {"role": "user", "content": f"message {number} of {began}"}
            body = {"model": "hermes", "messages": [said]}
            async with client.post(path, json=body, headers=headers) as response:
                answer = await response.json()
                assert response.status == 200, answer
            latencies.append(time.perf_counter() - began)

    async with ClientSession(
        address, headers={"Authorization": f"Bearer {key}"}, connector=TCPConnector(limit=0)
    ) as client:
        cpu, wall = _cpu_s(pid), time.perf_counter()
        await asyncio.gather(*(talk(client, f"load-{each}", requests // sessions) for each in range(sessions)))
        wall = time.perf_counter() - wall
    await asyncio.sleep(0.05)  # let the last turn finish its remaining work
    return (_cpu_s(pid) - cpu) / requests * 1000, requests / wall, statistics.median(latencies) * 1000


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _profile(seconds: float) -> None:
    """Print the functions of the daemon that take the most CPU time."""
    with (
        tempfile.TemporaryDirectory(prefix="hermes-bench-", dir=Path.cwd()) as folder,
        _server("model") as (model, _),
    ):
        stats = Path(folder, "stats")
        with _daemon(Path(folder), model, "-m", "cProfile", "-o", str(stats)) as daemon:
            until = time.perf_counter() + seconds
            while time.perf_counter() < until:
                print(asyncio.run(_load(*daemon, 64, 1280)))
        pstats.Stats(str(stats)).sort_stats("tottime").print_stats(60)


# ---------------------------------------------------------------- model and bare proxy


def _chunk(**choice: Any) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "model": "bench", "choices": [{"index": 0, **choice}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


_USAGE = {"id": "c", "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 5}}
_ANSWER = (
    _chunk(delta={"role": "assistant", "content": "An answer "})
    + _chunk(delta={"content": "of a few words."})
    + _chunk(delta={}, finish_reason="stop")
    + b"data: "
    + json.dumps(_USAGE).encode()
    + b"\n\ndata: [DONE]\n\n"
)
_WHOLE = {"id": "c", "object": "chat.completion", "choices": [{"index": 0, "message": {"content": "An answer"}}]}


async def _complete(request: web.Request) -> web.Response:
    body = await request.read()
    if b'"stream":true' in body or b'"stream": true' in body:
        return web.Response(body=_ANSWER, content_type="text/event-stream")
    return web.json_response(_WHOLE)


async def _serve_model() -> None:
    app = web.Application(client_max_size=1 << 30)
    app.router.add_post(PATH, _complete)
    await _listen(app)


async def _serve_proxy(model: str) -> None:
    async with ClientSession(model, connector=TCPConnector(limit=0)) as client:

        async def forward(request: web.Request) -> web.Response:
            """Forward the bytes, without a look at them."""
            body = await request.read()
            async with client.post(PATH, data=body) as response:
                return web.Response(body=await response.read(), content_type="application/json")

        async def assemble(request: web.Request) -> web.Response:
            """Ask the model for a stream, as the daemon does, and answer with what it says."""
            asked = {**await request.json(), "stream": True, "stream_options": {"include_usage": True}}
            text, usage, finish = "", None, None
            async with client.post(PATH, json=asked) as response:
                async for line in response.content:
                    if not line.startswith(b"data: ") or line == b"data: [DONE]\n":
                        continue
                    chunk = json.loads(line[6:])
                    usage = chunk.get("usage") or usage
                    for choice in chunk["choices"]:
                        text += choice["delta"].get("content") or ""
                        finish = choice.get("finish_reason") or finish
            message = {"role": "assistant", "content": text}
            choices = [{"index": 0, "message": message, "finish_reason": finish}]
            return web.json_response({"object": "chat.completion", "choices": choices, "usage": usage})

        app = web.Application(client_max_size=1 << 30)
        app.router.add_post(PATH, assemble)
        app.router.add_post(f"/forward{PATH}", forward)
        await _listen(app)


async def _listen(app: web.Application) -> None:
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["model"]:
            asyncio.run(_serve_model())
        case ["proxy", model]:
            asyncio.run(_serve_proxy(model))
        case ["profile", seconds]:
            _profile(float(seconds))
        case _:
            print(json.dumps(run(), indent=2))
