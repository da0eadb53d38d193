"""File with the OAuth tokens of MCP servers: private, written atomically, its contents never logged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hermes.config.log import redact
from hermes.config.secret import Secret
from hermes.system.durable_file import replace_file
from hermes.system.regular_file import read_regular_file

TOKEN_FILE = "mcp_tokens.json"  # noqa: S105 - a name
_MAX_SIZE = 1 << 20
_SECRETS = ("access_token", "refresh_token", "client_secret", "id_token")


class TokenFile:
    """Values by server and kind. All methods block."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / TOKEN_FILE

    def read(self, server: str, kind: str) -> Any:
        value = self._all().get(server, {}).get(kind)
        self._learn(value)
        return value

    def write(self, server: str, kind: str, value: Any) -> None:
        self._learn(value)
        everything = self._all()
        everything.setdefault(server, {})[kind] = value
        replace_file(self.path, json.dumps(everything, indent=1))

    def remove(self, server: str) -> bool:
        everything = self._all()
        if everything.pop(server, None) is None:
            return False
        replace_file(self.path, json.dumps(everything, indent=1))
        return True

    def _all(self) -> dict[str, Any]:
        try:
            found = json.loads(read_regular_file(self.path, max_bytes=_MAX_SIZE))
        except (FileNotFoundError, ValueError):
            return {}
        return found if isinstance(found, dict) else {}

    def _learn(self, value: Any) -> None:
        """Have the secrets masked in logs and in what the model sees."""
        for name in _SECRETS:
            if isinstance(value, dict) and isinstance(value.get(name), str) and value[name]:
                redact(Secret(value[name]))
