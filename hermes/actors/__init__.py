"""Actors: shells around the pure machines of the domain."""
