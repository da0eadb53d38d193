"""Texts of the page that `make providers` writes."""

from __future__ import annotations

from pathlib import Path

from tests.clients.page import PageTexts
from tests.providers.scenarios import SCENARIOS

PAGE = Path(__file__).parents[2] / "docs" / "providers.md"
TEXTS = PageTexts(
    title="Model endpoints of other people",
    intro=(
        "These model endpoints were written by other people. `make providers` installs each one in an exact version, "
        "starts the daemon with it as its model, and runs the same scenarios over each wire protocol. LiteLLM "
        "converts each protocol to chat completions for a scripted endpoint behind it; llama.cpp serves a small real "
        "model. The hosted providers themselves were not called: their protocols are tested against servers written "
        "from their documentation (`tests/support/`)."
    ),
    kind="endpoint",
    mode="protocol",
    scenarios=SCENARIOS,
)
