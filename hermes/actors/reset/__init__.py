"""Resets of sessions: rules, schedule, and the work that follows."""
