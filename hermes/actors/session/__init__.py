"""Session actor and what it shares with the directory."""
