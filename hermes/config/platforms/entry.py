"""What the rest of Hermes must know of a chat platform before any of it is imported."""

from __future__ import annotations

from typing import Protocol

from hermes.domain.values import dataclass


class PlatformSettings(Protocol):
    """What the settings of all platforms have in common."""

    @property
    def enabled(self) -> bool: ...
    @property
    def allowed_users(self) -> tuple[str, ...]: ...
    @property
    def admins(self) -> tuple[str, ...]: ...
    @property
    def places(self) -> tuple[str, ...]: ...  # groups or channels; if there are any, no other one is listened to
    @property
    def open_places(self) -> tuple[str, ...]: ...  # where everybody may talk


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformEntry:
    name: str  # of its section in the configuration, too
    hint: str  # what the model is told of writing there
    made_by: str  # the module whose ASSEMBLY makes the adapter from the settings
    set_up_by: str  # the module whose SETUP asks a person for the tokens
    sends_files: bool = True
