"""Driver of llm: the library behind the `llm` command, with a model of its own configuration file."""

from __future__ import annotations

import gc
import json
import os
from base64 import b64decode
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.clients.drivers.protocol import PERSON_SCHEMA, Answer, Ask, ClientTools, Connection, serve

USER_PATH = Path.home() / "llm"
os.environ["LLM_USER_PATH"] = str(USER_PATH)
import llm  # noqa: E402
from llm.plugins import load_plugins  # noqa: E402


class Llm:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._conversations: dict[str, Any] = {}
        USER_PATH.mkdir(exist_ok=True)
        load_plugins()

    def __call__(self, ask: Ask) -> Answer:
        model = self._model(ask.headers)
        conversation = self._conversations.setdefault(ask.conversation, model.conversation())
        conversation.model = model  # the same one, with the headers of this message
        if ask.structured:
            return Answer(parsed=json.loads(conversation.prompt(ask.text, schema=PERSON_SCHEMA, stream=False).text()))
        tools = ClientTools()
        options: dict[str, Any] = {"stream": ask.stream}
        if ask.picture:
            options["attachments"] = [llm.Attachment(content=b64decode(ask.picture.partition("base64,")[2]))]
        if ask.tools:
            options["tools"] = tools.functions(ask.tools)
        response = conversation.chain(ask.text, **options)
        text = ""
        with closing(iter(response)) as chunks:
            for chunk in chunks:
                text += chunk
                if chunk and ask.stream:
                    self._connection.on_chunk()
                if ask.abandon:
                    break
        if ask.abandon:
            gc.collect()  # a closed stream holds its connection until then
        return Answer(text=text, runs=tools.runs)

    def _model(self, headers: dict[str, str]) -> Any:
        """Read the model from the file that users write: headers are part of it."""
        entry = {
            "model_id": "hermes",
            "model_name": "hermes",
            "api_base": self._connection.base_url,
            "api_key_name": "hermes",
            "headers": headers,
            "responses": self._connection.mode == "responses",
            "supports_schema": True,
            "supports_tools": True,
            "vision": True,
        }
        (USER_PATH / "keys.json").write_text(json.dumps({"hermes": self._connection.key}), encoding="utf-8")
        (USER_PATH / "extra-openai-models.yaml").write_text(json.dumps([entry]), encoding="utf-8")
        return llm.get_model("hermes")


if __name__ == "__main__":
    serve(Llm)
