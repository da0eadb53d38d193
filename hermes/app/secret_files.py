"""Digests of secret files. The configuration only names them, so a changed file is not a changed setting."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from hermes.config.home import Home
from hermes.config.secret import api_key_path, given_api_key
from hermes.config.settings import Config
from hermes.domain.values import dataclass
from hermes.system.regular_file import read_regular_file

LIVE: Final = ("model.api_key_file",)  # the others are read at the start only
_SIZE_MAX: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """Settings whose files changed since they were read."""

    applied: tuple[str, ...]
    needs_restart: tuple[str, ...]


def digests(home: Home, config: Config, environ: Mapping[str, str]) -> dict[str, str]:
    """Return a digest of each secret file that is in use, by its setting; empty if it cannot be read. Blocks."""
    return {name: _digest(Path(path)) for name, path in _in_use(home, config, environ).items() if path}


def rewritten(
    before: Mapping[str, str], after: Mapping[str, str], changed_settings: Mapping[str, object]
) -> Rewritten:
    """Compare two sets of digests. A setting that names another file is reported as a changed setting instead."""
    names = [name for name, digest in after.items() if name not in changed_settings and before.get(name) != digest]
    return Rewritten(
        applied=tuple(name for name in names if name in LIVE),
        needs_restart=tuple(name for name in names if name not in LIVE),
    )


def in_force(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """Return the digests in use after a reload: the new ones of live files, the old ones of the others."""
    return {name: digest if name in LIVE else before.get(name, digest) for name, digest in after.items()}


def _in_use(home: Home, config: Config, environ: Mapping[str, str]) -> dict[str, str]:
    asks_for_key = config.api.enabled and given_api_key(environ) is None
    return {
        "model.api_key_file": config.model.api_key_file if config.model.is_remote else "",
        "api.key_file": str(api_key_path(home, config)) if asks_for_key else "",
        "web.search_api_key_file": config.web.search_api_key_file if config.web.search else "",
        "telegram.token_file": config.telegram.token_file if config.telegram.enabled else "",
        "slack.tokens_file": config.slack.tokens_file if config.slack.enabled else "",
    }


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(read_regular_file(path, max_bytes=_SIZE_MAX)).hexdigest()
    except OSError:
        return ""
