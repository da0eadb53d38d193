"""Registry of chat platforms.

A new platform needs an adapter (`adapters/NAME/`), settings and an entry (`config/platforms/NAME.py`), a factory
(`app/factories/NAME.py`) and a setup (`cli/setup/NAME_check.py`). It is registered here and has a section in
`settings.Config`, documented in `config/hermes.yaml`. Nothing else names a platform.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.config.platforms.slack import SLACK
from hermes.config.platforms.telegram import TELEGRAM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.config.platforms.entry import PlatformEntry

PLATFORMS: Mapping[str, PlatformEntry] = {entry.name: entry for entry in (TELEGRAM, SLACK)}
