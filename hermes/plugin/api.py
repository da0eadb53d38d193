"""What a plugin's `register` gets. It only collects: the daemon uses what was added, later."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeAlias

from hermes.domain.access.role import Role
from hermes.domain.event.hook import Hook, known_event
from hermes.domain.values import dataclass, replace
from hermes.ports.chat import ChatAdapter
from hermes.tools.tool import Tool

API_VERSION: Final = 1
_WORD: Final = re.compile(r"[a-z][a-z0-9_-]{0,31}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    """Slash command that a person gave."""

    name: str
    argument: str
    session: str  # empty: there is no conversation yet
    platform: str
    user: str
    role: Role


CommandHandler: TypeAlias = Callable[[CommandCall], Awaitable[str]]
HookHandler: TypeAlias = Callable[[str, Mapping[str, Any]], Any]  # takes the event and its facts; may be async


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginCommand:
    name: str
    help: str
    handler: CommandHandler
    usage: str = ""
    needs: Role = Role.USER


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginPlatform:
    """Chat platform of a plugin, and who may use it. These are the settings that every platform has."""

    name: str
    make: Callable[[], ChatAdapter]
    allowed_users: tuple[str, ...] = ()
    admins: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    open_places: tuple[str, ...] = ()
    enabled: bool = True


class PluginApi:
    version = API_VERSION

    def __init__(self, name: str, settings: Mapping[str, Any], environ: Mapping[str, str]) -> None:
        self.name = name
        self.settings = settings  # of `plugins.settings.NAME`
        self.environ = environ  # of the daemon, with its secrets
        self.tools: list[Tool] = []
        self.commands: list[PluginCommand] = []
        self.hooks: list[Hook] = []
        self.platforms: list[PluginPlatform] = []

    def add_tool(self, tool: Tool) -> None:
        """Add a tool. It belongs to the owner, admins and users; guests never have it."""
        self.tools.append(replace(tool, toolset=f"plugin-{self.name}"))

    def add_command(
        self,
        name: str,
        handler: CommandHandler,
        *,
        help: str,  # noqa: A002 - as people read it
        usage: str = "",
        needs: Role = Role.USER,
    ) -> None:
        """Add a slash command. Built-in commands and quick commands of the same name come first."""
        if not _WORD.fullmatch(name):
            raise ValueError(f"{name!r} is not the name of a command: one word of small letters")
        self.commands.append(PluginCommand(name=name, help=help, handler=handler, usage=usage, needs=needs))

    def on(
        self, event: str, handler: HookHandler, *, matcher: str = "", timeout_s: float = 10.0, closed: bool = False
    ) -> None:
        """Call a function at an event. For tool calls it can return a dict like the JSON of a hook.

        An async function runs on the event loop and must not block; another one runs in a thread.
        """
        self.hooks.append(
            Hook(
                name=self.name,
                on=(known_event(event),),
                handler=handler,
                matcher=matcher,
                timeout_s=timeout_s,
                closed=closed,
            )
        )

    def add_platform(
        self,
        name: str,
        make: Callable[[], ChatAdapter],
        *,
        allowed_users: tuple[str, ...] = (),
        admins: tuple[str, ...] = (),
    ) -> None:
        """Add a chat platform. `make` is called on the event loop, when the daemon starts."""
        if not name.isidentifier():
            raise ValueError(f"{name!r} is not the name of a platform: one word")
        self.platforms.append(PluginPlatform(name=name, make=make, allowed_users=allowed_users, admins=admins))
