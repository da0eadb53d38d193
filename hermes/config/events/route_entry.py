"""Entries of `webhooks.routes`: one for each address `/hooks/NAME`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from hermes.config.events.entries import NAME, EntryFields, read_entry
from hermes.config.secret import read_secret_file
from hermes.domain.access.role import Role
from hermes.domain.errors import ConfigError
from hermes.domain.event.target import parse_targets
from hermes.domain.event.webhook import Signing, WebhookRoute

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_KEYS: Final = frozenset(
    {
        *(NAME, "prompt", "signing", "header", "secret_env", "secret_file", "events", "id_header", "deliver", "role"),
        *("toolset", "model", "max_steps", "max_tokens", "max_usd", "per_minute", "max_body_bytes", "enabled"),
    }
)
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_HEADER: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,99}")
_DEFAULT: Final = WebhookRoute(name="", prompt="")


def parse_route(text: str) -> WebhookRoute:
    """Return the route of an entry. Raises ValueError."""
    found = read_entry(text, _KEYS)
    fields = EntryFields(found, f"route {str(found.get(NAME, ''))[:40]!r}")
    name = fields.text(NAME)
    if not _NAME.fullmatch(name):
        raise fields.fail("the name must have small letters, digits, - and _ only")
    route = WebhookRoute(
        name=name,
        prompt=fields.text("prompt", required=True),
        signing=Signing(fields.choice("signing", Signing.GITHUB, [each.value for each in Signing])),
        header=fields.text("header"),
        secret_env=fields.text("secret_env"),
        secret_file=fields.text("secret_file"),
        events=fields.texts("events"),
        id_header=fields.text("id_header"),
        deliver=fields.texts("deliver", _DEFAULT.deliver),
        role=Role(fields.choice("role", _DEFAULT.role, [each.value for each in reversed(Role)])),
        toolset=fields.texts("toolset", _DEFAULT.toolset),
        model=fields.text("model"),
        max_steps=int(fields.number("max_steps", _DEFAULT.max_steps, least=1, most=10_000)),
        max_tokens=int(fields.number("max_tokens", _DEFAULT.max_tokens, least=0, most=10**12)),
        max_usd=fields.number("max_usd", _DEFAULT.max_usd, least=0, most=10**6),
        per_minute=int(fields.number("per_minute", _DEFAULT.per_minute, least=1, most=100_000)),
        max_body_bytes=int(fields.number("max_body_bytes", _DEFAULT.max_body_bytes, least=1, most=64 << 20)),
        enabled=fields.flag("enabled", default=True),
    )
    _check(route, fields)
    return route


def _check(route: WebhookRoute, fields: EntryFields) -> None:
    from hermes.config.toolset import complaint_about_tool  # noqa: PLC0415 - where there are routes only

    if route.secret_env and not _VARIABLE.fullmatch(route.secret_env):
        raise fields.fail("secret_env must be the name of an environment variable, not the secret itself")
    if route.signing is not Signing.NONE and bool(route.secret_env) == bool(route.secret_file):
        raise fields.fail("needs either secret_env or secret_file (or `signing: none`)")
    if (route.signing is Signing.HEADER) != bool(route.header):
        raise fields.fail("header is the name of the signature's header, for `signing: header`")
    for header in filter(None, (route.header, route.id_header)):
        if not _HEADER.fullmatch(header):
            raise fields.fail(f"{header[:40]!r} is not the name of a header")
    try:
        parse_targets(route.deliver)
    except ValueError as error:
        raise fields.fail(f"deliver: {error}") from None
    if problem := next(filter(None, map(complaint_about_tool, route.toolset)), ""):
        raise fields.fail(f"toolset: {problem}")


def names_complaint(texts: tuple[str, ...]) -> str:
    names = [parse_route(text).name for text in texts]
    twice = next((name for name in names if names.count(name) > 1), "")
    return f"the route {twice} is set twice" if twice else ""


def secret_of(route: WebhookRoute, environ: Mapping[str, str], folder: Path) -> bytes:
    """Return the secret of a route. Raises ConfigError."""
    if route.signing is Signing.NONE:
        return b""
    if route.secret_file:
        return read_secret_file(folder / route.secret_file, f"webhooks.routes.{route.name}").reveal().encode()
    if not (value := environ.get(route.secret_env, "").strip()):
        raise ConfigError(
            f"the secret of the webhook {route.name} is missing: set the environment variable {route.secret_env}",
            missing_variables=(route.secret_env,),
        )
    return value.encode("utf-8", "surrogateescape")
