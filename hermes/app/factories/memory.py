"""Factory of the settings of memory."""

from __future__ import annotations

from hermes.config.settings import Config
from hermes.services.memory.memory_service import MemorySettings


def memory_settings(config: Config) -> MemorySettings:
    memory = config.memory
    return MemorySettings(
        memory_enabled=memory.memory_enabled,
        user_profile_enabled=memory.user_profile_enabled,
        memory_char_limit=memory.memory_char_limit,
        user_char_limit=memory.user_char_limit,
        write_approval=memory.write_approval,
        owner_accounts=memory.owner_accounts,
    )
