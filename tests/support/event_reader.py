"""Reader of server-sent events of the real daemon, for tests without an event loop."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

from tests.support.daemon_process import DaemonProcess


def read_events(daemon: DaemonProcess, path: str, last_event_id: str = "") -> Iterator[tuple[str, Any]]:
    """Name and data of each event until the stream ends; an id is added to the data as `_id`."""
    headers = {"Authorization": f"Bearer {daemon.key}"} if "token=" not in path else {}
    if last_event_id:
        headers["Last-Event-ID"] = last_event_id
    fields: dict[str, str] = {}
    with urllib.request.urlopen(
        urllib.request.Request(daemon.address + path, headers=headers), timeout=60
    ) as response:
        for raw in response:
            if line := raw.decode().rstrip("\n"):
                name, _, value = line.partition(": ")
                fields[name] = value
            elif "data" in fields:
                data = json.loads(fields["data"])
                yield fields.get("event", ""), {**data, "_id": fields.get("id", "")}
                fields = {}
            else:
                fields = {}
