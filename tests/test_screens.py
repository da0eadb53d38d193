"""The recorded screens are what the daemon shows today."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.screens import DOCUMENT, OnSlack, OnTelegram, Stage, recorded


@pytest.mark.parametrize("stage", [OnTelegram, OnSlack])
def test_the_document_is_what_the_daemon_shows(stage: Callable[[], Stage]) -> None:
    shown = recorded(stage)
    assert shown in DOCUMENT.read_text(encoding="utf-8"), "python -m tests.screens records it anew"
