"""Token file of Slack, with one entry per workspace. A new setup changes only the entry of its workspace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from hermes.app.factories.slack import Tokens, tokens_in
from hermes.cli.setup.slack_check import slack_team
from hermes.domain.errors import HermesError
from hermes.domain.values import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.config.secret import Secret


def present(tokens_file: str, base_url: str) -> list[Tokens]:
    """Return the entries of the file, each with its team if Slack knows it. Raises ConfigError."""
    if not tokens_file or not Path(tokens_file).exists():
        return []
    return [each if each.team else replace(each, team=_team(each, base_url)) for each in tokens_in(tokens_file)]


def merged(before: Sequence[Tokens], new: Tokens) -> list[Tokens]:
    """Return the entries with the new one in place of its workspace's; missing tokens are kept from the old one."""
    for number, old in enumerate(before):
        if (new.team and new.team == old.team) or new.bot_token.reveal() == old.bot_token.reveal():
            kept = replace(
                new,
                app_token=new.app_token or old.app_token,
                signing_secret=new.signing_secret or old.signing_secret,
            )
            return [*before[:number], kept, *before[number + 1 :]]
    return [*before, new]


def signing_secret(before: Sequence[Tokens], team: str) -> Secret | None:
    """Return the stored secret of this workspace, or the only one: an app can be in several workspaces."""
    known = {each.signing_secret.reveal(): each.signing_secret for each in before if each.signing_secret}
    own = next((each.signing_secret for each in before if each.team == team and each.signing_secret), None)
    return own or (next(iter(known.values())) if len(known) == 1 else None)


def lacking(entries: Sequence[Tokens], transport: str) -> list[str]:
    """Return the workspaces without the token that the transport needs."""
    return [
        each.team or "unknown workspace"
        for each in entries
        if (each.signing_secret if transport == "http" else each.app_token) is None
    ]


def as_text(entries: Sequence[Tokens]) -> str:
    return "".join(map(_as_text, entries))


def _as_text(entry: Tokens) -> str:
    secrets = {
        "bot_token": entry.bot_token,
        "app_token": entry.app_token,
        "signing_secret": entry.signing_secret,
    }
    lines = [f"{name}: {json.dumps(secret.reveal())}" for name, secret in secrets.items() if secret is not None]
    lines += [f"team: {json.dumps(entry.team)}"] if entry.team else []
    return f"- {lines[0]}\n" + "".join(f"  {line}\n" for line in lines[1:])


def _team(entry: Tokens, base_url: str) -> str:
    try:
        return slack_team(base_url, entry.bot_token.reveal())
    except HermesError:
        return ""  # revoked, or Slack is unreachable: the entry is kept without a team
