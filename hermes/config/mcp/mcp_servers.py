"""Section `mcp_servers` of the configuration: one server a name, checked and turned into a definition. Pure.

Values of `env` and `headers` may hold secrets: no message repeats them.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, TypeVar

from hermes.domain.access.role import Role
from hermes.domain.mcp.server_spec import McpAuth, McpServerSpec, McpTrust, OAuthSpec, SamplingSpec, TransportKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from enum import StrEnum

SECTION = "mcp_servers"
MAX_SERVERS = 200
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_)){0,31}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_URL = re.compile(r"https?://[^\s/@]+(/\S*)?")
_TRANSPORTS = {
    "stdio": TransportKind.STDIO,
    "http": TransportKind.HTTP,
    "streamable-http": TransportKind.HTTP,
    "streamable_http": TransportKind.HTTP,
    "sse": TransportKind.SSE,
}
_DAY_S = 86_400.0
E_ = TypeVar("E_", bound="StrEnum")
_DEFAULT = McpServerSpec(name="", transport=TransportKind.STDIO)


class _Fields:
    """Fields of one mapping. Every problem is noted, with the name of its field."""

    def __init__(self, where: str, given: Mapping[str, Any], problems: list[str]) -> None:
        self.where = where
        self._left = dict(given)
        self._problems = problems

    def complain(self, key: str, text: str) -> None:
        self._problems.append(f"{self.where}.{key}: {text}" if key else f"{self.where}: {text}")

    def has(self, key: str) -> bool:
        return self._left.get(key) is not None

    def text(self, key: str, default: str = "") -> str:
        value = self._left.pop(key, None)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            self.complain(key, "expected text")
            return default
        if not str(value).isprintable():
            self.complain(key, "must not contain control characters")
        return str(value)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self._left.pop(key, None)
        if value is None:
            return ()
        if not isinstance(value, list) or any(isinstance(each, dict | list) or each is None for each in value):
            self.complain(key, "expected a list of texts, like [a, b]")
            return ()
        return tuple(_plain(each) for each in value)

    def pairs(self, key: str, shape: re.Pattern[str]) -> tuple[tuple[str, str], ...]:
        value = self._left.pop(key, None)
        if value is None:
            return ()
        if not isinstance(value, dict) or any(isinstance(each, dict | list) for each in value.values()):
            self.complain(key, "expected names with values below it")
            return ()
        for name in value:
            if not shape.fullmatch(str(name)):
                self.complain(key, f"{str(name)[:40]!r} is not a valid name")
        found = tuple((str(name), "" if each is None else _plain(each)) for name, each in value.items())
        if any("\n" in each or "\0" in each for _, each in found):
            self.complain(key, "a value must not contain line breaks")
        return found

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._left.pop(key, None)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.complain(key, "expected true or false")
            return default
        return value

    def number(self, key: str, default: float, *, least: float, most: float) -> float:
        value = self._left.pop(key, None)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            self.complain(key, f"expected a number from {least:.12g} to {most:.12g}")
            return default
        return float(value)

    def choice(self, key: str, known: Mapping[str, E_], default: E_) -> E_:
        value = self._left.pop(key, None)
        if value is None:
            return default
        found = known.get(str(value).lower())
        if found is None:
            self.complain(key, f"must be one of {', '.join(known)}")
            return default
        return found

    def below(self, key: str) -> _Fields | None:
        value = self._left.pop(key, None)
        if value is None:
            return None
        if not isinstance(value, dict):
            self.complain(key, "expected settings below it")
            return None
        return _Fields(f"{self.where}.{key}", value, self._problems)

    def take(self, key: str) -> Any:
        return self._left.pop(key, None)

    def end(self, known: Iterable[str]) -> None:
        from difflib import get_close_matches  # noqa: PLC0415 - only for mistakes

        for key in self._left:
            near = get_close_matches(str(key), list(known), n=1)
            hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(known)}"
            self.complain("", f"unknown setting {str(key)[:40]!r}{hint}")


_KEYS = (
    *("command", "args", "env", "cwd", "url", "headers", "transport", "enabled", "include", "exclude", "tools"),
    *("timeout", "connect_timeout", "keepalive", "idle_timeout", "trust", "role", "auth", "oauth", "sampling"),
    *("elicitation", "resources", "prompts", "supports_parallel_tool_calls"),
)


def parse_server(name: str, given: object, *, where: str = "") -> tuple[McpServerSpec | None, list[str]]:
    """Return the definition of a server, or its problems. Numbers are seconds."""
    problems: list[str] = []
    where = where or f"{SECTION}.{name}"
    if not _NAME.fullmatch(name):
        return None, [
            f"{SECTION}: {name[:40]!r} is not a name: use up to 32 letters, digits, - and single _, such as github"
        ]
    if not isinstance(given, dict):
        return None, [f"{where}: expected a command or a url below it"]
    fields = _Fields(where, given, problems)
    spec = _read(name, fields)
    fields.end(_KEYS)
    return (None, problems) if problems else (spec, [])


def _read(name: str, fields: _Fields) -> McpServerSpec:
    command, url = fields.text("command"), fields.text("url")
    transport = _transport(fields, command, url)
    tools = fields.below("tools")
    include, exclude = fields.texts("include"), fields.texts("exclude")
    resources, prompts = fields.flag("resources", default=True), fields.flag("prompts", default=True)
    if tools is not None:
        include, exclude = (*include, *tools.texts("include")), (*exclude, *tools.texts("exclude"))
        resources, prompts = tools.flag("resources", default=resources), tools.flag("prompts", default=prompts)
        tools.end(("include", "exclude", "resources", "prompts"))
    return McpServerSpec(
        name=name,
        transport=transport,
        enabled=fields.flag("enabled", default=True),
        command=command,
        args=fields.texts("args"),
        env=fields.pairs("env", _VARIABLE),
        cwd=fields.text("cwd"),
        url=url,
        headers=fields.pairs("headers", _HEADER),
        auth=fields.choice("auth", {each.value: each for each in McpAuth}, McpAuth.NONE),
        oauth=_oauth(fields.below("oauth")),
        include=include,
        exclude=exclude,
        resources=resources,
        prompts=prompts,
        timeout_s=fields.number("timeout", _DEFAULT.timeout_s, least=0.1, most=_DAY_S),
        connect_timeout_s=fields.number("connect_timeout", _DEFAULT.connect_timeout_s, least=0.1, most=3600),
        keepalive_s=fields.number("keepalive", _DEFAULT.keepalive_s, least=5, most=_DAY_S),
        idle_s=fields.number("idle_timeout", _DEFAULT.idle_s, least=0.1, most=30 * _DAY_S),
        trust=fields.choice("trust", {each.value: each for each in McpTrust}, McpTrust.ASK),
        role=fields.choice("role", {each.value: each for each in Role}, Role.USER),
        parallel=fields.flag("supports_parallel_tool_calls", default=False),
        sampling=_sampling(fields),
        elicitation=fields.flag("elicitation", default=True),
    )


def _transport(fields: _Fields, command: str, url: str) -> TransportKind:
    kind = fields.choice("transport", _TRANSPORTS, TransportKind.HTTP if url else TransportKind.STDIO)
    if bool(command) == bool(url):
        fields.complain("", "needs either command (a program) or url (a server on the network)")
    elif (kind is TransportKind.STDIO) != bool(command):
        fields.complain("transport", "stdio needs command; http and sse need url")
    elif url and not _URL.fullmatch(url):
        fields.complain("url", "must be an address like https://host/mcp, without a password")
    return kind


def _oauth(fields: _Fields | None) -> OAuthSpec:
    if fields is None:
        return OAuthSpec()
    secret = fields.text("client_secret_env")
    if secret and not _VARIABLE.fullmatch(secret):
        fields.complain("client_secret_env", "must be the name of an environment variable, not the secret itself")
    found = OAuthSpec(
        client_id=fields.text("client_id"),
        client_secret_env=secret,
        scope=fields.text("scope"),
        redirect_port=int(fields.number("redirect_port", 0, least=0, most=65_535)),
    )
    fields.end(("client_id", "client_secret_env", "scope", "redirect_port"))
    return found


def _sampling(parent: _Fields) -> SamplingSpec:
    if not parent.has("sampling"):
        return SamplingSpec()
    value = parent.take("sampling")
    if isinstance(value, bool):
        return SamplingSpec(enabled=value)
    if not isinstance(value, dict):
        parent.complain("sampling", "expected true, false, or settings below it")
        return SamplingSpec()
    return _sampling_of(_Fields(f"{parent.where}.sampling", value, parent._problems))  # noqa: SLF001 - own class


def _sampling_of(fields: _Fields) -> SamplingSpec:
    default = SamplingSpec()
    found = SamplingSpec(
        enabled=fields.flag("enabled", default=True),
        max_rpm=int(fields.number("max_rpm", default.max_rpm, least=1, most=10_000)),
        max_tokens_cap=int(fields.number("max_tokens_cap", default.max_tokens_cap, least=1, most=1_000_000)),
        model=fields.text("model"),
        role=fields.choice("role", {each.value: each for each in Role}, default.role),
    )
    fields.end(("enabled", "max_rpm", "max_tokens_cap", "model", "role"))
    return found


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


# ------------------------------------------------------------ between the file and the settings


def written(name: str, given: object) -> str:
    """Return a server as one text, as the reader of the file passes it on."""
    return json.dumps([name, given], ensure_ascii=False)


def read_all(texts: Iterable[str], complain: Callable[[str], None] | None = None) -> tuple[McpServerSpec, ...]:
    """Return the definitions of texts made by `written`. Those with problems are left out."""
    found: list[McpServerSpec] = []
    for text in texts:
        name, given = json.loads(text)
        spec, problems = parse_server(name, given)
        if spec is not None:
            found.append(spec)
        elif complain is not None:
            for each in problems:
                complain(each)
    return tuple(found)
