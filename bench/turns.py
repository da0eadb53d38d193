"""Cost of a turn early and late in a session: CPU time of the daemon for a turn with a tool call.

The model is a separate server that requests one tool call and then answers. The CPU time covers the same number of
turns at the start of a session and after 2,000 messages.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from aiohttp import web

TURNS = 40
EARLY, LATE = 20, 2000  # messages
_TICKS = os.sysconf("SC_CLK_TCK")


def run() -> dict[str, float]:
    with (
        tempfile.TemporaryDirectory(prefix="hermes-bench-", dir=Path.cwd()) as folder,
        subprocess.Popen([sys.executable, "-m", "bench.turns", "model"], stdout=subprocess.PIPE) as model,
    ):
        try:
            assert model.stdout is not None
            return _measure(Path(folder), model.stdout.readline().decode().strip())
        finally:
            model.terminate()


def _measure(folder: Path, url: str) -> dict[str, float]:
    (folder / "note.txt").write_text("what the tool reads\n")
    environ = {key: value for key, value in os.environ.items() if not key.startswith("HERMES_")}
    environ |= {
        "HERMES_HOME": str(folder / "h"),
        "HERMES_API_PORT": "0",
        "HERMES_LOG_LEVEL": "WARNING",
        "HERMES_MODEL_PROVIDER": "openai",
        "HERMES_MODEL_BASE_URL": url,
        "HERMES_MODEL_NAME": "bench",
        "HERMES_MODEL_API_KEY_ENV": "",
        "HERMES_MODEL_CONTEXT_WINDOW": "100000000",
        "HERMES_TERMINAL_CWD": str(folder),
    }
    with subprocess.Popen(
        [sys.executable, "-m", "hermes.cli.main", "daemon"], env=environ, stdout=subprocess.PIPE
    ) as daemon:
        try:
            assert daemon.stdout is not None
            address = daemon.stdout.readline().decode().split(" is ready at ")[1].split()[0]
            key = (folder / "h" / "api.key").read_text().strip()
            return asyncio.run(_talk(address, key, daemon.pid))
        finally:
            daemon.terminate()


async def _talk(address: str, key: str, pid: int) -> dict[str, float]:
    import aiohttp

    headers = {"Authorization": f"Bearer {key}", "X-Hermes-Session-Id": "bench"}
    async with aiohttp.ClientSession(address, headers=headers) as client:
        messages = 0

        async def turns(count: int) -> float:
            nonlocal messages
            began = _cpu_s(pid)
            for _ in range(count):
                said = {"role": "user", "content": f"read the note, please, for the {messages}th time"}
                body = {"model": "hermes", "messages": [said]}
                async with client.post("/v1/chat/completions", json=body) as response:
                    answer = await response.json()
                    assert response.status == 200, answer
                messages += 4
            return (_cpu_s(pid) - began) / count

        await turns(EARLY // 4)
        early = await turns(TURNS)
        while messages < LATE:
            await turns(10)
        late = await turns(TURNS)
        return {"early_ms": early * 1000, "late_ms": late * 1000, "late_to_early": late / early}


def _cpu_s(pid: int) -> float:
    time.sleep(0.05)  # let the last turn finish its remaining work
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


# ---------------------------------------------------------------- the model


def _chunk(**choice: Any) -> bytes:
    chunk = {"id": "c", "object": "chat.completion.chunk", "model": "bench", "choices": [{"index": 0, **choice}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


async def _complete(request: web.Request) -> web.Response:
    body = await request.read()
    finished = body.rstrip().rfind(b'"role":"tool"') > body.rfind(b'"role":"user"')
    if finished:
        parts = _chunk(delta={"content": "It says what it said before."}) + _chunk(delta={}, finish_reason="stop")
    else:
        function = {"name": "read_file", "arguments": '{"path":"note.txt"}'}
        call = {"index": 0, "id": "call_1", "function": function}
        parts = _chunk(delta={"tool_calls": [call]}) + _chunk(delta={}, finish_reason="tool_calls")
    usage = {"id": "c", "choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 5}}
    end = b"data: " + json.dumps(usage).encode() + b"\n\ndata: [DONE]\n\n"
    return web.Response(body=parts + end, content_type="text/event-stream")


async def _serve() -> None:
    app = web.Application(client_max_size=1 << 30)
    app.router.add_post("/v1/chat/completions", _complete)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}/v1", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    if sys.argv[1:] == ["model"]:
        asyncio.run(_serve())
    else:
        print(json.dumps(run(), indent=2))
