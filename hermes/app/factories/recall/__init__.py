"""Factories of what Hermes recalls: the person model and semantic search."""
