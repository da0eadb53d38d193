"""Errors of a connection to an MCP server."""

from __future__ import annotations

from enum import StrEnum

from hermes.domain.errors import HermesError


class LinkFailure(StrEnum):
    START = "start"  # it could not be started or reached
    SETUP = "setup"  # trying again cannot help: no such program, no SDK, a variable is missing
    LOGIN = "login"
    LOST = "lost"  # the connection ended during the call
    TIMEOUT = "timeout"
    REFUSED = "refused"  # the server answered with an error
    CONTRACT = "contract"  # the answer does not have the form that the server promised


class McpLinkError(HermesError):
    def __init__(self, kind: LinkFailure, text: str) -> None:
        super().__init__(text)
        self.kind = kind
