"""Protocols between actors, adapters, storage and agent. Roles are defined here; implementations are elsewhere."""
