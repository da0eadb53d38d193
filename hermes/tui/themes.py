"""Themes of the terminal interface."""

from __future__ import annotations

from typing import Final

from textual.theme import Theme

DARK: Final = "hermes-dark"
LIGHT: Final = "hermes-light"
CONTRAST: Final = "high-contrast"

THEMES: Final = (
    Theme(
        name=DARK,
        primary="#7aa2f7",
        secondary="#9ece6a",
        accent="#e0af68",
        foreground="#c8d0e8",
        background="#15161e",
        surface="#1c1e2a",
        panel="#262a3a",
        success="#9ece6a",
        warning="#e0af68",
        error="#f7768e",
        dark=True,
    ),
    Theme(
        name=LIGHT,
        primary="#2257c4",
        secondary="#3a7d2c",
        accent="#a15c00",
        foreground="#20242e",
        background="#fbfbf9",
        surface="#f0f1ee",
        panel="#e2e4e0",
        success="#2f7a22",
        warning="#965500",
        error="#bc1f3f",
        dark=False,
    ),
    Theme(
        name=CONTRAST,
        primary="#ffff00",
        secondary="#00ffff",
        accent="#ffff00",
        foreground="#ffffff",
        background="#000000",
        surface="#000000",
        panel="#1a1a1a",
        success="#00ff00",
        warning="#ffff00",
        error="#ff6060",
        dark=True,
        variables={"text-muted": "#ffffff", "text-disabled": "#d0d0d0", "border": "#ffffff"},
    ),
)
