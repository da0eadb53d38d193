"""Figures about the context window."""
