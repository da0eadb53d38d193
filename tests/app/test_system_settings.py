"""From settings to policies of resets."""

from __future__ import annotations

import pytest

from hermes.app.system_settings import are_there_resets
from hermes.config.settings import SessionResetConfig


@pytest.mark.parametrize(
    ("config", "any_at_all"),
    [
        (SessionResetConfig(), False),
        (SessionResetConfig(mode="idle"), True),
        (SessionResetConfig(overrides=("telegram: daily",)), True),
        (SessionResetConfig(overrides=("telegram: none",)), False),
    ],
)
def test_whether_anything_is_ever_reset_is_known(config: SessionResetConfig, any_at_all: bool) -> None:
    assert are_there_resets(config) is any_at_all
