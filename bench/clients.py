"""Many concurrent clients: 500 requests of the openai package, with its default retries."""

from __future__ import annotations

import asyncio
import time

from openai import AsyncOpenAI

from tests.support.daemon_process import DaemonProcess

CLIENTS = 500


def run() -> dict[str, float]:
    with DaemonProcess() as daemon:
        started = time.perf_counter()
        answered = asyncio.run(_talk(daemon))
        return {"answered": answered, "all_s": time.perf_counter() - started}


async def _talk(daemon: DaemonProcess) -> int:
    async with AsyncOpenAI(base_url=f"{daemon.address}/v1", api_key=daemon.key) as client:

        async def ask() -> str | None:
            reply = await client.chat.completions.create(
                model="hermes", messages=[{"role": "user", "content": "!slow 0.5"}]
            )
            return reply.choices[0].message.content

        answers = await asyncio.gather(*(ask() for _ in range(CLIENTS)), return_exceptions=True)
    return sum(isinstance(answer, str) for answer in answers)
