"""The fake endpoint is used by many tests; as a program it must work too."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from hermes.domain.ids import SessionId
from hermes.domain.turn.message import EncodedMessage
from hermes.ports.agent import ModelRequest, ModelText
from tests.agent.harness import chat_model


async def test_as_a_program_it_answers_and_logs_every_request(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    program = (sys.executable, "-m", "tests.support.model_server", "--port", "0", "--log", str(log))
    process = await asyncio.create_subprocess_exec(*program, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        url = (await process.stdout.readline()).decode().strip()
        model = chat_model(url)
        message = EncodedMessage(b'{"role":"user","content":"hi"}')
        request = ModelRequest(session=SessionId("s"), messages=(message,))
        chunks = [chunk for _ in range(2) async for chunk in model.stream(request)]
        await model.close()
    finally:
        process.kill()
        await process.wait()
    assert [chunk.text for chunk in chunks if isinstance(chunk, ModelText)] == ["ok 1", "ok 2"]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["messages"] for line in lines] == [[{"role": "user", "content": "hi"}]] * 2
