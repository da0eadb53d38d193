"""Slash commands of the terminal interface: some act here, all others in the daemon."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING

from hermes.domain.errors import HermesError
from hermes.tui.chat.clipboard import code_of, last_answer
from hermes.tui.chat.keys import LOCAL_COMMANDS
from hermes.tui.chat.picture_files import picture_at
from hermes.tui.widgets.dialogs import ChoiceScreen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from hermes.tui.chat.chat_screen import ChatScreen
    from hermes.tui.chat.session_link import SessionLink
    from hermes.tui.chat.session_lists import SessionLists


class SlashCommands:
    def __init__(self, screen: ChatScreen, link: SessionLink, lists: SessionLists) -> None:
        self._screen = screen
        self._link = link
        self._lists = lists

    async def listed(self) -> Sequence[Mapping[str, Any]]:
        """Return the commands of both. Raises HermesError if no daemon answers."""
        local = {each["name"] for each in LOCAL_COMMANDS}
        return [*LOCAL_COMMANDS, *(each for each in await self._lists.commands() if each["name"] not in local)]

    async def run(self, text: str) -> None:
        screen = self._screen
        word, _, argument = text.removeprefix("/").partition(" ")
        match word.lower(), argument.strip():
            case (("quit" | "exit" | "q"), _):
                screen.app.exit()
            case ("keys", _) | ("help", ""):
                screen.action_help()
            case "theme", "":
                screen.run_worker(screen.app.ask_theme())
            case "theme", name:
                await screen.app.choose_theme(name)
            case "copy", what:
                self._copy(what)
            case "image", what:
                await self._send_picture(what)
            case (("sessions" | "resume"), ""):
                await screen.action_sessions()
            case _:
                screen.run_worker(self._ask_daemon(text))

    async def _ask_daemon(self, text: str) -> None:
        try:
            reply = await self._link.command(text)
        except HermesError as error:
            self._link.notice(f"{text.split(maxsplit=1)[0]}: {error}")
            return
        if reply.text:
            self._link.notice(reply.text)
        if reply.choices:
            await self._ask_back(text, reply.choices)

    async def _ask_back(self, text: str, choices: tuple[str, ...]) -> None:
        command = text.split(maxsplit=1)[0]
        picker = ChoiceScreen(command, {choice: choice for choice in choices})
        chosen = await self._screen.app.push_screen_wait(picker)
        if chosen is not None:
            await self._ask_daemon(f"{command} {chosen}")

    async def _send_picture(self, what: str) -> None:
        """Send a picture with a text. A path with spaces is in quotes."""
        try:
            name, *words = shlex.split(what)
        except ValueError:  # nothing, or an open quote
            self._link.notice("/image PATH [text] sends a picture; a path with spaces is in quotes.")
            return
        path = await asyncio.to_thread(picture_at, name, self._screen.directory())
        if path is None:
            self._link.notice(f"{name} is not a picture (PNG, JPEG, WebP or GIF) in {self._screen.directory()}.")
            return
        self._screen.app.said = True
        self._link.send(" ".join(words), (path,))

    def _copy(self, what: str) -> None:
        """Copy the last answer, or one of its code blocks."""
        answer = last_answer(self._link.view)
        if not answer:
            self._screen.notify("There is no answer to copy yet.")
            return
        if not what:
            self._screen.copy(answer, "Copied the last answer.")
            return
        blocks = code_of(answer)
        number = what.removeprefix("code").strip() or str(len(blocks))
        if not number.isdecimal() or not 1 <= int(number) <= len(blocks):
            self._link.notice(f"The last answer has {len(blocks)} code blocks; /copy code N copies one of them.")
            return
        self._screen.copy(blocks[int(number) - 1], f"Copied code block {number} of {len(blocks)}.")
