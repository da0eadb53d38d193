"""Everything that a plugin can add: a tool, a slash command, hooks, a chat platform and a model provider."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from hermes.plugin import (
    Abilities,
    ChatAdapter,
    ChatIntake,
    CommandCall,
    DeliveryError,
    Effect,
    Inbound,
    InboundKey,
    OutboxMessage,
    Place,
    Platform,
    PluginApi,
    Provider,
    ToolContext,
    ToolError,
    tool,
)

HERMES_API = 1
PROVIDER = Provider(name="example_models", title="Example models", base_url="http://127.0.0.1:9/v1")


@tool("example", effect=Effect.PURE)
async def count_letters(context: ToolContext, *, text: Annotated[str, "the text to count in"]) -> str:
    """Count the letters of a text."""
    if not text:
        raise ToolError("The text is empty.")
    return f"{sum(each.isalpha() for each in text)} letters"


async def greet(call: CommandCall) -> str:
    return f"Hello {call.argument or call.user or 'you'} on {call.platform}, you are {call.role}."


class FolderPlatform(Platform):
    """Writes the answers as lines of `out.txt`."""

    name = "folder"
    abilities = Abilities()

    def __init__(self, folder: Path) -> None:
        self._out = folder / "out.txt"

    def parts(self, text: str) -> Sequence[str]:
        return [text]

    async def ready(self, place: Place) -> None:
        """There is no rate limit."""

    async def send(self, outgoing: OutboxMessage, text: str) -> str:
        try:
            with self._out.open("a") as file:
                file.write(f"{outgoing.place.chat}: {text}\n")
        except OSError as error:
            raise DeliveryError(f"the folder cannot be written: {error.strerror}") from error
        return outgoing.id

    async def send_file(self, outgoing: OutboxMessage, path: str, text: str) -> str:
        raise DeliveryError("files are not supported", refused=True)

    async def edit(self, outgoing: OutboxMessage, message: str, text: str) -> None:
        raise DeliveryError("messages are not edited", refused=True)

    async def delete(self, outgoing: OutboxMessage, message: str) -> None:
        raise DeliveryError("messages are not deleted", refused=True)

    async def find(self, outgoing: OutboxMessage, part: int) -> str | None:
        return None

    async def show_typing(self, place: Place) -> None:
        """Nobody would see it."""

    async def show_waiting(self, place: Place, *, over: bool = False) -> None:
        """Nobody would see it."""


class FolderChat(ChatAdapter):
    """Chat in a folder: a person writes `in/NAME.txt`."""

    def __init__(self, folder: Path) -> None:
        self._in = folder / "in"
        self._platform = FolderPlatform(folder)

    @property
    def platform(self) -> Platform:
        return self._platform

    async def run(self, intake: ChatIntake) -> None:
        """Take each file once it is on disk in Hermes, then remove it: that is the acknowledgement."""
        self._in.mkdir(parents=True, exist_ok=True)
        while True:
            intake.alive()
            for path in sorted(self._in.glob("*.txt")):
                inbound = Inbound(
                    id=InboundKey(f"folder:{path.name}"),
                    place=Place(platform="folder", chat="ann"),
                    user="ann",
                    user_name="Ann",
                    text=path.read_text().strip(),
                )
                await intake.take(inbound)
                path.unlink()
            await asyncio.sleep(0.05)

    async def close(self) -> None:
        """Nothing is open."""


def register(api: PluginApi) -> None:
    log = Path(api.settings["log"])

    def note_end(event: str, facts: Mapping[str, Any]) -> None:
        with log.open("a") as file:
            file.write(f"{event} {facts['ok']}\n")

    def refuse(_event: str, facts: Mapping[str, Any]) -> dict[str, str] | None:
        return {"decision": "block", "reason": "no x here"} if "x" in facts["tool_input"].get("text", "") else None

    api.add_tool(count_letters)
    api.add_command("greet", greet, help="Say hello", usage="[name]")
    api.on("agent:end", note_end)
    api.on("pre_tool_call", refuse, matcher="count_letters")
    api.add_platform("folder", lambda: FolderChat(Path(api.settings["folder"])), allowed_users=("ann",))
