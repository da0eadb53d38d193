"""Factories: each module makes one part of the daemon from the settings."""
