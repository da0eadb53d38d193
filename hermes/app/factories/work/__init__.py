"""Factories of work without a person: child sessions and what starts them."""
