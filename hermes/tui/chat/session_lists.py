"""Lists for the menus of the terminal interface: slash commands, sessions, and messages that contain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes.tui.chat.daemon import ChatDaemon


class SessionLists:
    """Every method raises HermesError if no daemon answers."""

    def __init__(self, daemon: ChatDaemon) -> None:
        self._daemon = daemon

    async def commands(self) -> list[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = (await self._daemon.call("GET", "/api/commands"))["commands"]
        return found

    async def sessions(self, limit: int = 100) -> list[Mapping[str, Any]]:
        """Return the last active sessions, each with the beginning of its first message as `preview`."""
        params = {"limit": str(limit), "preview": "1"}
        found = await self._daemon.call("GET", "/api/sessions", params=params)
        previews = found.get("previews") or {}
        return [{**each, "preview": previews.get(each["id"], {}).get("first", "")} for each in found["sessions"]]

    async def search(self, words: str) -> list[Mapping[str, Any]]:
        params = {"q": words, "limit": "50"}
        found: list[Mapping[str, Any]] = (await self._daemon.call("GET", "/api/search", params=params))["hits"]
        return found
