"""Entry of a chat platform in the registry, known without importing the platform."""

from __future__ import annotations

from typing import Protocol

from hermes.domain.values import dataclass


class PlatformSettings(Protocol):
    """Settings that all platforms have."""

    @property
    def enabled(self) -> bool: ...
    @property
    def allowed_users(self) -> tuple[str, ...]: ...
    @property
    def admins(self) -> tuple[str, ...]: ...
    @property
    def places(self) -> tuple[str, ...]: ...  # allowed groups or channels; empty allows all
    @property
    def open_places(self) -> tuple[str, ...]: ...  # groups or channels where everyone can talk to the bot


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformEntry:
    name: str  # also of its section in the configuration
    hint: str  # text for the prompt about writing there
    made_by: str  # module whose ASSEMBLY creates the adapter from the settings
    set_up_by: str  # module whose SETUP asks for the tokens
    sends_files: bool = True
