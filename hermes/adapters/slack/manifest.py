"""Manifest of the Slack app that Hermes needs, for "create app from a manifest"."""

from __future__ import annotations

from typing import Any

from hermes.adapters.slack.command_sign import native
from hermes.services.commands.registry import COMMANDS

SCOPES = (
    "app_mentions:read",
    "channels:history",
    "channels:read",  # channels, groups, im, mpim: list channels for the backfill
    "chat:write",
    "chat:write.public",  # answers to /hermes in public channels without the bot
    "commands",
    "files:read",
    "files:write",
    "groups:history",
    "groups:read",
    "im:history",
    "im:read",
    "im:write",
    "metadata.message:read",  # to find a message whose confirmation was lost
    "mpim:history",
    "mpim:read",
    "reactions:write",
    "users:read",  # display names
)
_USAGE = "help | new | status | anything you want to ask"
_EVENTS = ("app_mention", "message.channels", "message.groups", "message.im", "message.mpim")


def manifest(
    name: str = "Hermes", *, url: str = "", assistant: bool = False, all_commands: bool = False
) -> dict[str, Any]:
    """Return the manifest for the Events API if `url` is given, else for Socket Mode. With `assistant`, direct
    messages come as threads. With `all_commands`, each command is also registered by its own name."""
    commands = [_command("/hermes", "Talk to Hermes, or give it a command", _USAGE)]
    if all_commands:
        commands += [_command(native(each), each.help, each.usage) for each in COMMANDS]
    if url:
        commands = [{**each, "url": url} for each in commands]
    features: dict[str, Any] = {
        "app_home": {
            "home_tab_enabled": False,
            "messages_tab_enabled": True,
            "messages_tab_read_only_enabled": False,
        },
        "bot_user": {"display_name": name, "always_online": True},
        "slash_commands": commands,
    }
    events: dict[str, Any] = {"bot_events": [*_EVENTS]}
    interactivity: dict[str, Any] = {"is_enabled": True}
    scopes = [*SCOPES]
    if assistant:
        features["assistant_view"] = {"assistant_description": "Keeps long conversations and remembers everything"}
        events["bot_events"].append("assistant_thread_started")
        scopes.append("assistant:write")
    if url:
        events["request_url"] = interactivity["request_url"] = url
    return {
        "display_information": {"name": name, "description": "Long-lived conversations with an AI agent"},
        "features": features,
        "oauth_config": {"scopes": {"bot": sorted(scopes)}},
        "settings": {
            "event_subscriptions": events,
            "interactivity": interactivity,
            "org_deploy_enabled": False,
            "socket_mode_enabled": not url,
            "token_rotation_enabled": False,
        },
    }


def _command(word: str, description: str, usage: str) -> dict[str, Any]:
    hint = {"usage_hint": usage} if usage else {}  # Slack rejects an empty hint
    return {"command": word, "description": description, **hint, "should_escape": False}
