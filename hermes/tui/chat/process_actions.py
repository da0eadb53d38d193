"""What a person does with background processes and subagents: see the output, end one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hermes.domain.errors import HermesError
from hermes.tui.widgets.confirmation import Confirmation
from hermes.tui.widgets.plain_text import one_line
from hermes.tui.widgets.process_screen import ProcessScreen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.app import App

    from hermes.tui.chat.daemon import ChatDaemon
    from hermes.tui.chat.session_link import SessionLink

_LIMIT_BYTES = "20000"  # of the output


class ProcessActions:
    def __init__(self, app: App[None], daemon: ChatDaemon, link: SessionLink) -> None:
        self._app = app
        self._daemon = daemon
        self._link = link

    async def show(self, process: Mapping[str, Any]) -> None:
        """Show the output, until the person closes it or wants to end the process."""
        name = str(process["id"])

        def now() -> Mapping[str, Any]:
            return next((each for each in self._link.figures.processes if each["id"] == name), process)

        if await self._app.push_screen_wait(ProcessScreen(now, lambda: self._output(name))):
            await self.end(now())

    async def end(self, process: Mapping[str, Any]) -> None:
        """End the process if the person confirms it."""
        name, command = str(process["id"]), one_line(str(process["command"]), 60)
        if not process["running"]:
            self._app.notify(f"{name} has ended already.", markup=False)
        elif await self._app.push_screen_wait(Confirmation(f"End {name} and all that it started?\n{command}")):
            try:
                await self._daemon.call("POST", f"/api/processes/{quote(name, safe='')}/kill")
            except HermesError as error:
                self._app.notify(one_line(str(error)), severity="error", markup=False)
            await self._link.refresh()

    async def end_agent(self, agent: Mapping[str, Any]) -> None:
        """End a subagent if the person confirms it."""
        name, task = str(agent["id"]), one_line(str(agent.get("task") or ""), 60)
        if await self._app.push_screen_wait(Confirmation(f"End subagent {name}?\n{task}")):
            try:
                reply = await self._link.command(f"/agents stop {name}")
            except HermesError as error:
                self._app.notify(one_line(str(error)), severity="error", markup=False)
            else:
                self._app.notify(one_line(reply.text), markup=False)

    async def _output(self, name: str) -> tuple[str, bool]:
        """Return the end of the output, and whether its beginning is left out. Raises HermesError."""
        path = f"/api/processes/{quote(name, safe='')}/log"
        found = await self._daemon.call("GET", path, params={"limit": _LIMIT_BYTES})
        return str(found["text"]), int(found["offset"]) > 0
