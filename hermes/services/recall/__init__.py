"""Recall: summaries of what a search found, searches by people, and what a turn recalls before it starts."""
