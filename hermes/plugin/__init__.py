"""API for plugins: Python packages that add tools, slash commands, hooks, chat platforms and model providers.

A package names its `register(api)` in the entry point group `hermes.plugins`, and its model providers in the group
`hermes.providers`. Its module sets `HERMES_API = 1`. What this module exports is the API; the version changes when
something in it is removed or means something else.
"""

from __future__ import annotations

from hermes.domain.access.role import Role
from hermes.domain.errors import DeliveryError, PlatformError
from hermes.domain.ids import InboundKey
from hermes.domain.outbox_message import OutboxMessage
from hermes.domain.provider import ModelFacts, Provider, WireProtocol
from hermes.domain.source import Place
from hermes.domain.turn.tool_call import Effect, Gate, Verdict
from hermes.plugin.api import API_VERSION, CommandCall, PluginApi
from hermes.ports.chat import Abilities, ChatAdapter, ChatIntake, Inbound, Platform
from hermes.tools.tool import ToolContext, ToolError, ToolResult, tool

__all__ = [
    "API_VERSION",
    "Abilities",
    "ChatAdapter",
    "ChatIntake",
    "CommandCall",
    "DeliveryError",
    "Effect",
    "Gate",
    "Inbound",
    "InboundKey",
    "ModelFacts",
    "OutboxMessage",
    "Place",
    "Platform",
    "PlatformError",
    "PluginApi",
    "Provider",
    "Role",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "Verdict",
    "WireProtocol",
    "tool",
]
