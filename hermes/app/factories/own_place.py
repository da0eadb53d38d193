"""Addresses and secret files of this daemon, for the tool gates that protect them."""

from __future__ import annotations

import os
import socket
from dataclasses import fields
from typing import TYPE_CHECKING

from hermes.config.home import Home
from hermes.config.settings import SECTIONS, Config
from hermes.system.own_ports import own_ports

if TYPE_CHECKING:
    from hermes.shell_policy.protected_path import OwnAddress


def secret_paths(config: Config, home: Home) -> tuple[str, ...]:
    """Return the configuration directory, and every file that a setting names for a key or a token."""
    named = [str(home.config_file.parent)]
    for section in SECTIONS:
        values = getattr(config, section)
        named += [getattr(values, each.name) for each in fields(values) if each.name.endswith("_file")]
    return tuple(dict.fromkeys(os.path.realpath(path) for path in named if path))


def own_address(config: Config) -> OwnAddress:
    """Return the addresses of all ports of the daemon, under each host name that reaches them."""
    from hermes.shell_policy.protected_path import OwnAddress  # noqa: PLC0415 - the sandbox of an idle daemon needs none

    slack, telegram = config.slack, config.telegram
    listens = {
        config.api.port: config.api.enabled,
        slack.port: slack.enabled and slack.transport == "http",
        telegram.webhook_port: telegram.enabled and bool(telegram.webhook_url),
    }
    ports = {port for port, is_used in listens.items() if is_used and port}
    hosts = (config.api.host, *config.api.allowed_hosts, slack.host, telegram.webhook_host)
    named = dict.fromkeys((*hosts, socket.gethostname()))
    return OwnAddress(ports=own_ports() | ports, hosts=tuple(each for each in named if each))
