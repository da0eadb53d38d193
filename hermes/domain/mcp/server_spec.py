"""Definition of an MCP server, as `mcp_servers` in the configuration has it."""

from __future__ import annotations

from enum import StrEnum
from hashlib import sha256

from hermes.domain.access.role import Role
from hermes.domain.values import dataclass

Pairs = tuple[tuple[str, str], ...]


class TransportKind(StrEnum):
    STDIO = "stdio"
    HTTP = "http"  # streamable HTTP
    SSE = "sse"


class McpTrust(StrEnum):
    """How far the owner trusts a server's tools to run without approval."""

    ASK = "ask"  # every call asks, unless the owner has granted the tool
    READ_ONLY = "read_only"  # tools that call themselves read-only run without asking
    FULL = "full"  # no call asks


class McpAuth(StrEnum):
    NONE = "none"
    OAUTH = "oauth"


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingSpec:
    """Model calls that a server may request during a tool call."""

    enabled: bool = True
    max_rpm: int = 10  # requests per minute
    max_tokens_cap: int = 4096
    model: str = ""  # empty: the configured one
    role: Role = Role.USER  # minimum role of the person of the turn


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSpec:
    client_id: str = ""  # empty: the client registers itself
    client_secret_env: str = ""  # variable of the daemon with the secret
    scope: str = ""
    redirect_port: int = 0  # 0: any free port


@dataclass(frozen=True, slots=True, kw_only=True)
class McpServerSpec:
    name: str
    transport: TransportKind
    enabled: bool = True
    command: str = ""
    args: tuple[str, ...] = ()
    env: Pairs = ()
    cwd: str = ""
    url: str = ""
    headers: Pairs = ()
    auth: McpAuth = McpAuth.NONE
    oauth: OAuthSpec = OAuthSpec()
    include: tuple[str, ...] = ()  # names or patterns; empty: every tool
    exclude: tuple[str, ...] = ()
    resources: bool = True  # offer tools that list and read resources
    prompts: bool = True  # offer tools that list and get prompts
    timeout_s: float = 300.0  # of a call
    connect_timeout_s: float = 60.0
    keepalive_s: float = 180.0  # between two checks of an open connection
    idle_s: float = 600.0  # after which an unused server is stopped
    trust: McpTrust = McpTrust.ASK
    role: Role = Role.USER  # minimum role of a person who uses it
    parallel: bool = False  # its calls may run beside others
    sampling: SamplingSpec = SamplingSpec()
    elicitation: bool = True  # it may ask the person questions

    @property
    def fingerprint(self) -> str:
        """Return a digest of what decides which server this is. A changed one is another server."""
        parts = (self.transport, self.command, *self.args, self.cwd, self.url, *(name for name, _ in self.env))
        return sha256("\0".join(parts).encode()).hexdigest()[:16]

    @property
    def address(self) -> str:
        """Return the command or URL for people, without values that may be secret."""
        return self.url.partition("?")[0] if self.url else self.command
