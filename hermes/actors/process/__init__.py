"""Actors of background processes."""
