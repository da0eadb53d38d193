"""From settings to parts: each module makes one part of the daemon."""
