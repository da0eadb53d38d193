"""The recorded screens are what the daemon shows today."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.screens import DOCUMENT, OnSlack, OnTelegram, ScreenRecorder, recorded


@pytest.mark.parametrize("stage", [OnTelegram, OnSlack])
def test_the_document_is_what_the_daemon_shows(stage: Callable[[], ScreenRecorder]) -> None:
    title, *scenes = recorded(stage).split("\n### ")
    chapter = DOCUMENT.read_text(encoding="utf-8").partition(title)[2].partition("\n## ")[0]
    # Compared one by one, so that a failure shows the scene: python -m tests.support.screens records them anew.
    assert [each.strip() for each in chapter.split("\n### ")[1:]] == [each.strip() for each in scenes]
