"""The chat platforms there are.

A new one brings its adapter (`adapters/NAME/`), its settings and its entry (`platforms/NAME.py`), what makes the
adapter from the settings (`assembly/NAME.py`) and what sets it up (`cli/NAME_check.py`). It is entered here, and has
a section in `settings.Config`, which `config/hermes.yaml` explains. Nothing else names a platform.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.config.platforms.slack import SLACK
from hermes.config.platforms.telegram import TELEGRAM

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hermes.config.platforms.entry import PlatformEntry

PLATFORMS: Mapping[str, PlatformEntry] = {entry.name: entry for entry in (TELEGRAM, SLACK)}
