"""Operations on a whole home or conversation: backup, restore, export, import."""
